"""The windows of a pooling op as the pooling templates take them: macros of C expressions.

A window that covers the whole plane is described as one long row, and an adaptive window that
divides the input evenly as a strided one: both then run in vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from pocketgrad.ops.average import AvgPool2d, AvgPool2dGrad
from pocketgrad.ops.pool import AdaptiveMaxPool2d, AdaptiveMaxPool2dGrad, Pool
from pocketgrad.ops.window import Adaptive, Strided, Window


@dataclass(frozen=True)
class Geometry:
    """Windows along both axes. ``positions``: an index is h * W + w, not the tap r * S + s."""

    rows: Window
    columns: Window
    padded: bool
    positions: bool

    @property
    def inner(self) -> tuple[int, int]:
        """Columns of the output from and to which windows are whole."""
        whole = [j for j in range(self.columns.count) if self._is_whole(j)]
        return (whole[0], whole[-1] + 1) if whole else (0, 0)

    def _is_whole(self, j: int) -> bool:
        return self.columns.taps(j) == (0, self.taps_w)

    @property
    def stride_w(self) -> int:
        """Distance of neighbouring windows along width; 0 where it varies."""
        if self.columns.count == 1:
            return 1
        return self.columns.stride if isinstance(self.columns, Strided) else 0

    @property
    def taps_w(self) -> int:
        """Taps of a whole window along width."""
        return self.columns.most

    @property
    def taps(self) -> int:
        """Taps of a whole window."""
        return self.rows.most * self.columns.most

    @property
    def covers(self) -> bool:
        """Whether there is one window, over everything."""
        axes = self.rows, self.columns
        return all(
            a.count == 1 and a.step == 1 and a.extent(0, self.padded) == a.size == seen(a)
            for a in axes
        )

    def macros(self) -> dict[str, object]:
        """What all templates need to know."""
        rows, columns = self.rows, self.columns
        tap = f"r * {self.taps_w} + s"
        if self.positions:
            tap = f"({rows.c_start('i')} + r) * {columns.size} + {columns.c_start('j')} + s"
        first_h, end_h = rows.c_taps("i")
        first_w, end_w = columns.c_taps("j")
        return {
            "OH": rows.count,
            "OW": columns.count,
            "W": columns.size,
            "DH": rows.step,
            "DW": columns.step,
            "START_H": rows.c_start("i"),
            "START_W": columns.c_start("j"),
            "FIRST_H": first_h,
            "END_H": end_h,
            "FIRST_W": first_w,
            "END_W": end_w,
            "EXTENT_H": rows.c_extent("i", self.padded),
            "EXTENT_W": columns.c_extent("j", self.padded),
            "TAP": f"({tap})",
        }

    def readers(self) -> dict[str, object]:
        """Which windows read an element, as gradients ask."""
        from_h, past_h = self.rows.c_readers("h")
        from_w, past_w = self.columns.c_readers("w")
        return {"FROM_H": from_h, "PAST_H": past_h, "FROM_W": from_w, "PAST_W": past_w}


def seen(window: Window) -> int:
    """How many elements the first window reads."""
    first, end = window.taps(0)
    return end - first


def _regular(window: Window) -> Window:
    if isinstance(window, Adaptive) and window.count and window.size % window.count == 0:
        k = window.size // window.count
        return Strided(window.size, window.count, k, k, 0, 0, 1)
    return window


def geometry(op: Pool, hw: tuple[int, int], joined: bool) -> Geometry:
    """Windows of an op; ``joined``: rows of the input follow each other without gaps."""
    rows, columns = (_regular(w) for w in op.windows(hw))
    positions = isinstance(op, AdaptiveMaxPool2d | AdaptiveMaxPool2dGrad)
    padded = isinstance(op, AvgPool2d | AvgPool2dGrad) and op.count_include_pad
    found = Geometry(rows, columns, padded, positions)
    if joined and found.covers and 0 not in hw:
        area = hw[0] * hw[1]
        row = Strided(1, 1, 1, 1, 0, 0, 1)
        return Geometry(row, Strided(area, 1, area, 1, 0, 0, 1), padded, positions)
    return found
