"""Arithmetic of intervals in time, many at once: what is covered, by how many, for how long.

Times are int64 nanoseconds; all functions are pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array


@dataclass(frozen=True, eq=False)
class Tiles:
    """Intervals in the order of their start, each belonging to a row of some table."""

    start_ns: Array
    end_ns: Array
    row: Array

    def __len__(self) -> int:
        return len(self.row)

    @staticmethod
    def of(start_ns: Array, end_ns: Array, row: Array) -> Tiles:
        """Sorted."""
        order = np.argsort(start_ns, kind="stable")
        return Tiles(start_ns[order], end_ns[order], row[order])

    @property
    def overlap(self) -> bool:
        """Whether two run at once."""
        return bool(np.any(self.start_ns[1:] < np.maximum.accumulate(self.end_ns)[:-1]))


@dataclass(frozen=True, eq=False)
class Division:
    """The measured time as tiles, and which columns of a table the rows of the tiles belong to.

    ``weights`` (rows, columns): the share of each row that a column gets; rows add up to 1.
    """

    tiles: Tiles
    weights: Array

    @property
    def seconds(self) -> Array:
        """Time of each column."""
        lengths = (self.tiles.end_ns - self.tiles.start_ns) / 1e9
        by_row = np.bincount(self.tiles.row, lengths, len(self.weights))
        return np.asarray(by_row @ self.weights)


def union(start_ns: Array, end_ns: Array) -> tuple[Array, Array]:
    """The same time as intervals that neither overlap nor touch, in order."""
    if not len(start_ns):
        return start_ns, end_ns
    order = np.argsort(start_ns, kind="stable")
    starts, ends = start_ns[order], np.maximum.accumulate(end_ns[order])
    new = np.concatenate(([True], starts[1:] > ends[:-1]))
    last = np.concatenate((np.flatnonzero(new)[1:] - 1, [len(starts) - 1]))
    return starts[new], ends[last]


def covered(start_ns: Array, end_ns: Array, at_ns: Array) -> Array:
    """How much of the time before each moment lies in the intervals (those of `union`)."""
    if not len(start_ns):
        return np.zeros(len(at_ns))
    index = np.searchsorted(start_ns, at_ns, side="right")
    whole = np.concatenate(([0], np.cumsum(end_ns - start_ns)))
    inside = (
        np.minimum(at_ns, end_ns[np.maximum(index - 1, 0)]) - start_ns[np.maximum(index - 1, 0)]
    )
    before = whole[np.maximum(index - 1, 0)]
    return np.where(index > 0, before + inside, 0).astype(np.float64)


def holes(windows: tuple[Array, Array], busy: tuple[Array, Array]) -> tuple[Array, Array]:
    """The parts of windows that no busy interval covers (both as `union` gives them, or apart)."""
    low, high = _pieces(*windows, *busy)
    chosen = _inside(windows, low, high) & ~_inside(busy, low, high)
    return low[chosen], high[chosen]


def common(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """The time in both."""
    low, high = _pieces(*first, *second)
    chosen = _inside(first, low, high) & _inside(second, low, high)
    return low[chosen], high[chosen]


def _pieces(*edges: Array) -> tuple[Array, Array]:
    """The time between neighbouring edges."""
    found = np.unique(np.concatenate(edges))
    return found[:-1], found[1:]


def _inside(intervals: tuple[Array, Array], low: Array, high: Array) -> Array:
    """Which pieces the intervals cover; a piece is covered wholly or not at all."""
    return np.asarray(covered(*intervals, high) > covered(*intervals, low))


def shared_growth(tiles: Tiles, t_ns: Array, total: Array) -> Array:
    """How much a quantity grew in each tile; where several run at once, divided equally.

    ``total`` is what it had grown to at ``t_ns``, linear between.
    """
    edges = np.unique(np.concatenate((tiles.start_ns, tiles.end_ns)))
    if len(edges) < 2:
        return np.zeros(len(tiles))
    steps = np.diff(np.interp(edges, t_ns, total))
    change = np.zeros(len(edges))
    np.add.at(change, np.searchsorted(edges, tiles.start_ns), 1)
    np.add.at(change, np.searchsorted(edges, tiles.end_ns), -1)
    running = np.maximum(np.cumsum(change)[:-1], 1)
    each = np.concatenate(([0.0], np.cumsum(steps / running)))
    at_start = each[np.searchsorted(edges, tiles.start_ns)]
    at_end = each[np.searchsorted(edges, tiles.end_ns)]
    grown: Array = at_end - at_start
    return grown


def overlaps(tiles: Tiles, windows: tuple[Array, Array], rows: int) -> Array:
    """Nanoseconds of every row's tiles in every window: shape (windows, rows).

    Windows are in order and do not overlap.
    """
    low, high = windows
    found = np.zeros((len(low), rows))
    first = np.searchsorted(high, tiles.start_ns, side="right")
    last = np.searchsorted(low, tiles.end_ns, side="left")
    for ahead in range(int((last - first).max(initial=0))):
        window = first + ahead
        tile = np.flatnonzero(window < last)
        window = window[tile]
        inside = np.minimum(tiles.end_ns[tile], high[window]) - np.maximum(
            tiles.start_ns[tile], low[window]
        )
        np.add.at(found, (window, tiles.row[tile]), np.maximum(inside, 0))
    return found


def run_lengths(tiles: Tiles, column: Array, columns: int) -> tuple[Array, Array]:
    """For each column the mean length of its unbroken runs, weighed by length, and their number.

    ``column`` names the column of each row.
    """
    owner = column[tiles.row]
    apart = (owner[1:] != owner[:-1]) | (tiles.start_ns[1:] > tiles.end_ns[:-1])
    begin = np.flatnonzero(np.concatenate(([True], apart))) if len(tiles) else np.zeros(0, np.int64)
    end = np.concatenate((begin[1:], [len(tiles)]))[: len(begin)] - 1
    lengths = (tiles.end_ns[end] - tiles.start_ns[begin]).astype(np.float64)
    owners = owner[begin]
    total = np.bincount(owners, lengths, columns)
    squares = np.bincount(owners, lengths**2, columns)
    count = np.bincount(owners, minlength=columns)
    return np.divide(squares, total, out=np.zeros(columns), where=total > 0), count
