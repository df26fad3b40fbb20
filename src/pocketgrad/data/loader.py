"""Batches of a data set in an order that is a pure function of seed and epoch, made ahead.

Knows nothing of devices: a batch is arrays in host memory, in the element type they are stored in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, SettingError
from pocketgrad.data.batch import Batch, Source, check_finite, permutation
from pocketgrad.data.prefetch import prefetched


@dataclass(eq=False)
class Loader:
    """Batches, epoch by epoch: each ``for batch in loader`` gives what is left of one epoch.

    All batches have ``batch`` samples; the last of an epoch is filled up with repeated ones of
    weight 0, or left out with ``drop_last``. With ``shuffle=False`` a batch may be larger than the
    data set (for evaluation); training on such a batch is refused as a likely mistake.
    """

    dataset: Source
    batch: int
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False
    prefetch: int = 2  # batches made ahead; 0: no thread
    start: tuple[int, int] = (0, 0)  # epoch, and batch in it, to give first
    epoch: int = field(init=False)
    index: int = field(init=False)
    _order: tuple[int, Array] | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        n = len(self.dataset)
        if self.batch < 1:
            raise SettingError(f"batch size {self.batch}: choose 1 or more")
        if self.prefetch < 0:
            raise SettingError(f"prefetch {self.prefetch}: choose 0 (no thread) or more")
        if self.batch > n and (self.shuffle or self.drop_last):
            raise DataError(
                f"batch size {self.batch} is larger than data set '{self.dataset.name}' "
                f"with {n} samples; choose a batch of at most {n}"
            )
        self._seek(*self.start)

    def __len__(self) -> int:
        """Batches in one epoch."""
        n = len(self.dataset)
        return n // self.batch if self.drop_last else -(-n // self.batch)

    def __iter__(self) -> Iterator[Batch]:
        """The batches left in the current epoch; breaking off keeps the place."""
        epoch = self.epoch
        made = (self.batch_at(epoch, i) for i in range(self.index, len(self)))
        with closing(prefetched(made, self.prefetch)) as batches:
            for batch in batches:
                self._seek(*self._after(epoch, batch.index))
                yield batch

    def order(self, epoch: int) -> Array:
        """The rows of the data set in the order of that epoch."""
        if not self.shuffle:
            return np.arange(len(self.dataset))
        known = self._order
        if known is None or known[0] != epoch:
            known = (epoch, permutation(len(self.dataset), self.seed, epoch))
            self._order = known
        return known[1]

    def batch_at(self, epoch: int, index: int) -> Batch:
        """Any batch again, as the loop gave or will give it; the place of the loop stays."""
        self._check_place(epoch, index)
        rows = self.order(epoch)[index * self.batch : (index + 1) * self.batch]
        count = len(rows)
        weight = np.zeros(self.batch, np.float32)
        weight[:count] = 1
        # Repeats of its own samples, so that statistics over the batch stay near the true ones.
        rows = np.resize(rows, self.batch)
        x = np.ascontiguousarray(self.dataset.x[rows])
        if x.dtype == np.float32 and not isinstance(self.dataset.x, np.ndarray):
            where = f"data set '{self.dataset.name}', batch {index} of epoch {epoch}"
            check_finite(where, "samples", x)
        y = np.ascontiguousarray(self.dataset.y[rows])
        return Batch(x, y, weight, count, index, epoch, rows)

    def state(self) -> dict[str, int]:
        """The place of the first batch not yet given, and what it depends on; fits in JSON."""
        return {"epoch": self.epoch, "index": self.index} | self._identity()

    def restore(self, state: Mapping[str, int]) -> None:
        """Go on where ``state`` was taken; refused when the batches would be other ones."""
        for key, here in self._identity().items():
            if state.get(key) != here:
                raise DataError(
                    f"cannot resume the data: it was saved with {key} {state.get(key)}, "
                    f"but now {key} is {here}; use the saved value, or start anew"
                )
        self._seek(int(state["epoch"]), int(state["index"]))

    def _identity(self) -> dict[str, int]:
        return {
            "seed": self.seed,
            "batch": self.batch,
            "samples": len(self.dataset),
            "shuffle": int(self.shuffle),
            "drop_last": int(self.drop_last),
        }

    def _after(self, epoch: int, index: int) -> tuple[int, int]:
        return (epoch, index + 1) if index + 1 < len(self) else (epoch + 1, 0)

    def _seek(self, epoch: int, index: int) -> None:
        self._check_place(epoch, index)
        self.epoch, self.index = epoch, index

    def _check_place(self, epoch: int, index: int) -> None:
        if epoch < 0 or not 0 <= index < len(self):
            raise DataError(
                f"no batch {index} in epoch {epoch}: epochs count from 0, "
                f"and an epoch has batches 0 to {len(self) - 1}"
            )
