"""What samples and a batch are, and the order of samples; below data sets and loaders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, SettingError

_CHECK_ROWS = 4096  # rows looked at in one go, so that a check of a mapped file needs little memory


@runtime_checkable
class Samples(Protocol):
    """Anything with the shape of an array that gives rows when indexed: an array, a folder."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of samples, then the shape of one."""

    @property
    def dtype(self) -> Any:  # Any: NumPy's own dtype types do not fit a protocol
        """The element type of a sample."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any:  # Any: ndarray's overloads do not fit a protocol
        """The samples of those rows, as one array."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One batch of fixed size. A short one is filled up; the filling has weight 0."""

    x: Array
    y: Array
    weight: Array | None  # float32, one per sample: 1 real, 0 filling; None is all ones
    count: int  # real samples
    index: int  # which batch of the epoch
    epoch: int = 0
    rows: Array | None = None  # the row of the data set each sample is, for reports

    def __iter__(self) -> Iterator[Array]:
        """So that ``x, y = batch`` works; mind ``weight`` when the last batch may be short."""
        return iter((self.x, self.y))


class Source(Protocol):
    """What a loader needs of a data set."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def x(self) -> Samples:
        """The samples."""

    @property
    def y(self) -> Array:
        """Their targets."""

    def __len__(self) -> int: ...


def permutation(n: int, seed: int, stream: int) -> Array:
    """An order of ``n`` rows that depends on the numbers given and on nothing else.

    Made of Philox's raw output, which NumPy keeps stable (its ``shuffle`` may change by version).
    """
    if seed < 0 or stream < 0 or max(seed, stream) >= 1 << 64:
        raise SettingError(f"seed {seed}: choose from 0 to 2^64 - 1")
    bits = np.random.Philox(key=np.array([seed, stream], np.uint64)).random_raw(n)
    return np.argsort(bits, kind="stable")


def check_finite(where: str, what: str, array: Array) -> None:
    """Refuse NaN and infinity, naming the first row that holds one."""
    for start in range(0, len(array), _CHECK_ROWS):
        block = array[start : start + _CHECK_ROWS]
        bad = ~np.isfinite(block)
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0])
            row = (start + place[0], *place[1:])
            raise DataError(
                f"{where}: {what} hold {block[place]} at index {row}; "
                "remove or replace such values before training"
            )
