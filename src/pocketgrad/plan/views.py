"""How a value lies in memory: a base value's buffer, an offset and a stride per logical axis.

Images lie row-major ([N, C, H, W], ``whole``) or channels-last (``last``).
Reshape, Transpose, Broadcast, Slice and Flip are only other views of their input; no launch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from pocketgrad.ir.core import Op, Value
from pocketgrad.ops.move import Flip, Reshape, Slice, Transpose
from pocketgrad.ops.reduce import Broadcast

VIEW_OPS = (Reshape, Transpose, Broadcast, Slice, Flip)


@dataclass(frozen=True)
class View:
    """Element (i, j, …) is element ``offset + i·strides[0] + j·strides[1] + …`` of base."""

    base: Value
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def dense(self) -> bool:
        """Whether the elements follow each other in row-major order without gaps."""
        expected = row_major(self.shape)
        sizes = zip(self.shape, self.strides, expected, strict=True)
        return all(n == 1 or s == e for n, s, e in sizes) or 0 in self.shape

    @property
    def packed(self) -> bool:
        """Whether the elements lie without gaps, the axes in whichever order."""
        axes = sorted(zip(self.strides, self.shape, strict=True), reverse=True)
        strides, shape = zip(*axes, strict=True) if axes else ((), ())
        return View(self.base, self.offset, shape, strides).dense

    @property
    def complete(self) -> bool:
        """Whether every element of the base is seen once, in whichever order."""
        return self.packed and self.offset == 0 and prod(self.shape) == self.base.type.size

    @property
    def pitch(self) -> int | None:
        """Elements from pixel to pixel of a channels-last image batch; None if it is none."""
        if len(self.shape) != 4 or 0 in self.shape:
            return None
        (n, c, h, w), (sn, sc, sh, sw) = self.shape, self.strides
        pitch = sw if w > 1 else sh if h > 1 else sn if n > 1 else c
        expected = (h * w * pitch, 1, w * pitch, pitch)
        fits = all(
            size == 1 or stride == wanted
            for size, stride, wanted in zip(self.shape, (sn, sc, sh, sw), expected, strict=True)
        )
        return pitch if fits and pitch >= c else None

    @property
    def span(self) -> tuple[int, int]:
        """First element touched and one past the last, in elements of base."""
        if 0 in self.shape:
            return self.offset, self.offset
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.offset + sum(s for s in steps if s < 0)
        return low, self.offset + sum(s for s in steps if s > 0) + 1


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a dense array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def whole(value: Value) -> View:
    """The view of a value that has a place of its own."""
    return View(value, 0, value.shape, row_major(value.shape))


def last(value: Value, pitch: int | None = None) -> View:
    """Images [N, C, H, W] with neighbouring channels side by side, in the first of ``pitch``."""
    _, c, h, w = value.shape
    p = c if pitch is None else pitch
    return View(value, 0, value.shape, (h * w * p, 1, w * p, p))


def through(op: Op, view: View) -> View | None:
    """The view after a view op; None where it needs a copy (a reshape of scattered elements)."""
    match op:
        case Reshape(shape):
            return _reshaped(view, shape)
        case Transpose(axes):
            return replace(
                view,
                shape=tuple(view.shape[a] for a in axes),
                strides=tuple(view.strides[a] for a in axes),
            )
        case Broadcast(shape):
            lead = len(shape) - len(view.shape)
            strides = (0,) * lead + tuple(
                0 if n == 1 else s for n, s in zip(view.shape, view.strides, strict=True)
            )
            return replace(view, shape=shape, strides=strides)
        case Slice(starts, stops, steps):
            shape = tuple(len(range(*b)) for b in zip(starts, stops, steps, strict=True))
            shift = sum(a * s for a, s in zip(starts, view.strides, strict=True))
            strides = tuple(k * s for k, s in zip(steps, view.strides, strict=True))
            return View(view.base, view.offset + shift, shape, strides)
        case Flip(axes):
            offset, turned = view.offset, list(view.strides)
            for a in axes:
                offset += (view.shape[a] - 1) * turned[a] if view.shape[a] else 0
                turned[a] = -turned[a]
            return replace(view, offset=offset, strides=tuple(turned))
    return None


def _reshaped(view: View, shape: tuple[int, ...]) -> View | None:
    if view.dense:
        return replace(view, shape=shape, strides=row_major(shape))
    strides: list[int] = []
    old = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    new = [n for n in shape if n != 1]
    while new:
        group_old, group_new = [old.pop(0)], [new.pop(0)]
        while prod(n for n, _ in group_old) != prod(group_new):
            if prod(n for n, _ in group_old) < prod(group_new):
                group_old.append(old.pop(0))
            else:
                group_new.append(new.pop(0))
        for (_, outer), (n, inner) in pairwise(group_old):
            if outer != n * inner:
                return None
        step, made = group_old[-1][1], []
        for n in reversed(group_new):
            made.append(step)
            step *= n
        strides += reversed(made)
    kept = iter(strides)
    return replace(view, shape=shape, strides=tuple(0 if n == 1 else next(kept) for n in shape))
