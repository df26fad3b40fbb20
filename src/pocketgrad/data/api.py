"""What a data set is. Reading files is in the readers, batching in ``loader``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, UnknownNameError
from pocketgrad.data.batch import Samples, check_finite, permutation
from pocketgrad.data.loader import Loader

SAMPLE_DTYPES = ("uint8", "int32", "int64", "float32")
_STATS_ROWS = 4096  # rows that mean and deviation are taken from, spread over the data set


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Samples with their targets, checked; ``held_out`` is the part kept for testing.

    Images are uint8 ``[N, C, H, W]``, labels int32 ``[N]``. ``mean`` and ``std`` are on the scale
    of the stored values (0 to 255 for images), one number per channel, or one for everything.
    """

    name: str
    x: Samples
    y: Array
    classes: tuple[str, ...] = ()  # empty: the targets are not class labels
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    held_out: Dataset | None = None
    parts: int = 1  # inputs of the model that x holds, stacked along axis 1
    vocabularies: tuple[tuple[str, ...], ...] = ()  # what whole numbers in x and y stand for

    def __post_init__(self) -> None:
        check_samples(self.name, self.x, self.y)
        if self.classes:
            check_labels(self.name, self.y, len(self.classes))
        if len(self.mean) != len(self.std):
            raise DataError(
                f"data set '{self.name}': {len(self.mean)} means but {len(self.std)} deviations; "
                "give one of each per channel"
            )
        if self.parts > 1 and self.sample_shape[:1] != (self.parts,):
            raise DataError(
                f"data set '{self.name}' is said to hold {self.parts} inputs of a model along axis "
                f"1, samples are {list(self.sample_shape)}"
            )
        if self.held_out is not None:
            _check_parts(self, self.held_out)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one sample, without the batch."""
        return tuple(self.x.shape[1:])

    @property
    def test(self) -> Dataset:
        """The part kept for testing; an error where there is none."""
        if self.held_out is None:
            raise DataError(
                f"data set '{self.name}' has no test part; keep one back with .hold_out(n)"
            )
        return self.held_out

    @property
    def train(self) -> Dataset:
        """The part to learn from: this data set itself."""
        return self

    def split(self, part: str) -> Dataset:
        """The part of that name, 'train' or 'test'."""
        if part not in ("train", "test"):
            raise UnknownNameError("part of a data set", part, ("train", "test"))
        return self.test if part == "test" else self

    def loader(self, batch: int, seed: int = 0, *, shuffle: bool = True) -> Loader:
        """Its batches; this is how a training loop finds them."""
        return Loader(self, batch, seed, shuffle=shuffle)

    def rows(self, rows: Array) -> Dataset:
        """The samples of those rows, in that order; the test part stays."""
        x = self.x[rows] if isinstance(self.x, np.ndarray) else _View(self.x, rows)
        return replace(self, x=x, y=self.y[rows])

    def subset(self, n: int, seed: int = 0) -> Dataset:
        """``n`` samples chosen by seed; the test part stays."""
        self._check_count("subset", n, len(self))
        return self.rows(np.sort(permutation(len(self), seed, 0)[:n]))

    def hold_out(self, n: int, seed: int = 0) -> Dataset:
        """The same samples with ``n`` of them, chosen by seed, kept back as the test part."""
        self._check_count("hold_out", n, len(self) - 1)
        order = permutation(len(self), seed, 0)
        test = replace(self, held_out=None).rows(np.sort(order[:n]))
        return replace(replace(self, held_out=None).rows(np.sort(order[n:])), held_out=test)

    def _check_count(self, action: str, n: int, most: int) -> None:
        if not 1 <= n <= most:
            raise DataError(
                f"{action}({n}) of data set '{self.name}' with {len(self)} samples; "
                f"choose from 1 to {most}"
            )


class _View:
    """Chosen rows of samples that are read when asked for."""

    def __init__(self, samples: Samples, rows: Array) -> None:
        self._samples, self._rows = samples, rows

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._rows), *self._samples.shape[1:])

    @property
    def dtype(self) -> Any:  # Any: as in Samples
        return self._samples.dtype

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Any, /) -> Any:  # Any: as in Samples
        return self._samples[self._rows[rows]]


def channel_stats(x: Samples) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel of uint8 images; 0 and 1 for all other samples."""
    if x.dtype != np.uint8 or len(x.shape) != 4 or len(x) == 0:
        return (0.0,), (1.0,)
    picked = x[np.unique(np.linspace(0, len(x) - 1, min(len(x), _STATS_ROWS)).astype(np.int64))]
    level = np.arange(256, dtype=np.float64)
    means, deviations = [], []
    for c in range(x.shape[1]):
        share = np.bincount(picked[:, c].ravel(), minlength=256) / picked[:, c].size
        mean = float(share @ level)
        deviation = float(np.sqrt(share @ (level - mean) ** 2))
        means.append(round(mean, 3))
        deviations.append(round(deviation, 3) or 1.0)  # a channel without contrast stays as it is
    return tuple(means), tuple(deviations)


def check_samples(name: str, x: Samples, y: Array) -> None:
    """Refuse what cannot be trained on: nothing, unequal counts, other element types, NaN."""
    if len(x.shape) == 0 or len(x) == 0:
        raise DataError(f"data set '{name}' is empty; give at least one sample")
    if len(x) != len(y):
        raise DataError(f"data set '{name}' has {len(x)} samples but {len(y)} targets")
    for what, array in (("samples", x), ("targets", y)):
        if str(array.dtype) not in SAMPLE_DTYPES:
            raise DataError(
                f"data set '{name}': {what} are {array.dtype}; convert them to one of "
                f"{', '.join(SAMPLE_DTYPES)}, for instance with .astype('float32')"
            )
        if array.dtype == np.float32 and isinstance(array, np.ndarray):
            check_finite(f"data set '{name}'", what, array)


def check_labels(name: str, y: Array, classes: int) -> None:
    """Refuse labels that are not whole numbers from 0 to ``classes`` - 1, naming the first."""
    if y.dtype.kind not in "iu":
        raise DataError(f"data set '{name}': class labels must be whole numbers, not {y.dtype}")
    bad = (y < 0) | (y >= classes)
    if bad.any():
        row = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"data set '{name}': label {int(y[row])} at row {row[0]} is out of range: "
            f"with {classes} classes labels go from 0 to {classes - 1}"
        )


def _check_parts(train: Dataset, test: Dataset) -> None:
    ours = (train.sample_shape, str(train.x.dtype), train.classes)
    theirs = (test.sample_shape, str(test.x.dtype), test.classes)
    for what, a, b in zip(("sample shape", "element type", "classes"), ours, theirs, strict=True):
        if a != b:
            raise DataError(
                f"data set '{train.name}': the training part has {what} {a}, the test part {b}"
            )
