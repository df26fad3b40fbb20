"""Pooling in two dimensions: largest and average, over strided or adaptive windows.

A max pool also gives where its maximum was, so that the gradient need not look for it again.
Values are [N,C,H,W]. ``windows(hw)`` is the geometry along both axes, in Python and in C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array, int32
from pocketgrad.base.errors import DtypeError, ShapeError
from pocketgrad.ir.build import emit, emit_all
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value
from pocketgrad.ops.conv import Pair, pair_of, planes, sides_of, widened
from pocketgrad.ops.window import Adaptive, Window, strided

# kernel, stride, padding, dilation, ceil_mode, x
_CASES: tuple[tuple[Any, ...], ...] = (
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False, (1, 1, 1, 1)),
    ((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False, (2, 3, 8, 6)),
    ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False, (2, 5, 9, 11)),
    ((3, 2), (2, 3), (1, 1, 1, 1), (1, 1), True, (1, 4, 7, 13)),
    ((3, 3), (1, 1), (0, 1, 1, 0), (1, 1), False, (2, 17, 5, 5)),
    ((2, 3), (1, 2), (1, 1, 1, 1), (3, 2), False, (1, 2, 9, 8)),
    ((2, 2), (3, 3), (0, 0, 0, 0), (1, 1), True, (1, 3, 8, 8)),
    ((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False, (0, 2, 4, 4)),
)

# out_hw, x
_ADAPTIVE: tuple[tuple[Any, ...], ...] = (
    ((1, 1), (2, 3, 5, 7)),
    ((3, 5), (1, 4, 7, 13)),
    ((2, 2), (2, 17, 4, 6)),
    ((5, 4), (1, 2, 3, 4)),
)


@dataclass(frozen=True)
class Pool(Op):
    """Base of the four families of windows."""

    def windows(self, hw: Sequence[int]) -> tuple[Window, Window]:
        """Geometry along height and width for an input of this size."""
        raise NotImplementedError

    def pooled(self, x: TensorType) -> tuple[int, ...]:
        """The output's shape."""
        planes((x,))
        rows, columns = self.windows(x.shape[2:])
        rows.check("height")
        columns.check("width")
        return (*x.shape[:2], rows.count, columns.count)

    def spread(self, ct: TensorType, hw: tuple[int, int]) -> TensorType:
        """The input's type, given that of the output's cotangent."""
        x = TensorType((*ct.shape[:2], *hw), ct.dtype)
        if self.pooled(x) != ct.shape:
            raise ShapeError(f"pooling {x} gives {self.pooled(x)}, not {ct}")
        return x

    def work(self, x: TensorType, y: TensorType, moved: int) -> Cost:
        """One operation for every element that a window reads."""
        rows, columns = self.windows(x.shape[2:])
        return Cost(y.size * rows.most * columns.most, moved)


@dataclass(frozen=True)
class StridedPool(Pool):
    """Base of windows of one size; ``padding`` is top, left, bottom, right."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    ceil_mode: bool

    def windows(self, hw: Sequence[int]) -> tuple[Window, Window]:
        top, left, bottom, right = self.padding
        (r, s), (sh, sw), (dh, dw) = self.kernel, self.stride, self.dilation
        rows = strided(hw[0], r, sh, (top, bottom), dh, self.ceil_mode, "height")
        return rows, strided(hw[1], s, sw, (left, right), dw, self.ceil_mode, "width")

    @classmethod
    def cases(cls) -> Iterator[tuple[dict[str, Any], TensorType]]:
        """Attributes and input types of samples."""
        names = ("kernel", "stride", "padding", "dilation", "ceil_mode")
        for *attributes, x in _CASES:
            yield dict(zip(names, attributes, strict=True)), TensorType(x)


@dataclass(frozen=True)
class AdaptivePool(Pool):
    """Base of windows that cover the input with ``out_hw`` outputs."""

    out_hw: tuple[int, int]

    def windows(self, hw: Sequence[int]) -> tuple[Window, Window]:
        if min(self.out_hw) < 1 or min(hw) < 1:
            raise ShapeError(f"adaptive pooling from size {tuple(hw)} to {self.out_hw} is empty")
        return Adaptive(hw[0], self.out_hw[0]), Adaptive(hw[1], self.out_hw[1])

    @classmethod
    def cases(cls) -> Iterator[tuple[dict[str, Any], TensorType]]:
        """Attributes and input types of samples."""
        for out_hw, x in _ADAPTIVE:
            yield {"out_hw": out_hw}, TensorType(x)


# ---- largest ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MaxPool2d(StridedPool):
    """Largest of each window, and its tap r * S + s: the first of equals; a NaN wins."""

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        y = self.pooled(x)
        return TensorType(y, x.dtype), TensorType(y, int32)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        y, r, s = largest(x, *self.windows(x.shape[2:]))
        return y, (r * self.kernel[1] + s).astype(np.int32)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        h, w = inputs[0].shape[2:]
        grad = MaxPool2dGrad(**self.attributes(), hw=(h, w))
        return (None if cts[0] is None else emit(grad, outputs[1], cts[0]),)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(ins[0], outs[0], ins[0].nbytes + sum(t.nbytes for t in outs))

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for attributes, x in cls.cases():
            yield Sample(cls(**attributes), (x,))


@dataclass(frozen=True)
class MaxPool2dGrad(StridedPool):
    """From taps and the cotangent of y to that of x; taps in the padding contribute nothing."""

    hw: tuple[int, int]
    has_gradient = False

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        indexed(types)
        return (self.spread(types[1], self.hw),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        index, ct = arrays
        r, s = np.divmod(index, self.kernel[1])
        return (scattered(ct, (r, s), *self.windows(self.hw)),)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(ins[1].size, sum(t.nbytes for t in ins) + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for attributes, x in cls.cases():
            forward = MaxPool2d(**attributes)
            y, index = forward.infer(x)
            taps = forward.kernel[0] * forward.kernel[1]
            grad = cls(**attributes, hw=(x.shape[2], x.shape[3]))
            yield Sample(grad, (index, y), ints=(0, taps))


@dataclass(frozen=True)
class AdaptiveMaxPool2d(AdaptivePool):
    """Largest of each window, and its position h * W + w: the first of equals; a NaN wins."""

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        y = self.pooled(x)
        return TensorType(y, x.dtype), TensorType(y, int32)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        rows, columns = self.windows(x.shape[2:])
        y, r, s = largest(x, rows, columns)
        top, left = starts(rows, columns)
        return y, ((top + r) * x.shape[3] + left + s).astype(np.int32)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        h, w = inputs[0].shape[2:]
        return (
            None
            if cts[0] is None
            else emit(AdaptiveMaxPool2dGrad(self.out_hw, (h, w)), outputs[1], cts[0]),
        )

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(ins[0], outs[0], ins[0].nbytes + sum(t.nbytes for t in outs))

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for attributes, x in cls.cases():
            yield Sample(cls(**attributes), (x,))


@dataclass(frozen=True)
class AdaptiveMaxPool2dGrad(AdaptivePool):
    """From positions and the cotangent of y to that of x; those outside the window are skipped."""

    hw: tuple[int, int]
    has_gradient = False

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        indexed(types)
        return (self.spread(types[1], self.hw),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        index, ct = arrays
        rows, columns = self.windows(self.hw)
        h, w = np.divmod(index, self.hw[1])
        top, left = starts(rows, columns)
        return (scattered(ct, (h - top, w - left), rows, columns),)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(ins[1].size, sum(t.nbytes for t in ins) + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for attributes, x in cls.cases():
            y, index = AdaptiveMaxPool2d(**attributes).infer(x)
            _, _, h, w = x.shape
            yield Sample(cls(**attributes, hw=(h, w)), (index, y), ints=(0, h * w))


def largest(x: Array, rows: Window, columns: Window) -> tuple[Array, Array, Array]:
    """Largest of each window, and the taps along height and width where it is."""
    across, s = _largest_along(x, columns)
    y, r = _largest_along(np.swapaxes(across, 2, 3), rows)
    y, r = np.swapaxes(y, 2, 3), np.swapaxes(r, 2, 3)
    tops = np.array([rows.start(i) for i in range(rows.count)])[:, None]
    return np.ascontiguousarray(y), r, np.take_along_axis(s, tops + r * rows.step, 2)


def _largest_along(x: Array, window: Window) -> tuple[Array, Array]:
    positions, valid = window.table()
    best = np.zeros((*x.shape[:-1], window.count), x.dtype)
    tap = np.full(best.shape, -1)
    for r in range(window.most):
        candidate = x[..., positions[:, r]]
        wins = valid[:, r] & ((tap < 0) | (candidate > best) | np.isnan(candidate))
        best, tap = np.where(wins, candidate, best), np.where(wins, r, tap)
    return best, tap


def scattered(ct: Array, taps: tuple[Array, Array], rows: Window, columns: Window) -> Array:
    """Add each cotangent at the tap of its window, if that is inside the input."""
    dx = np.zeros((*ct.shape[:2], rows.size, columns.size), widened(ct).dtype)
    inside = np.ones(ct.shape, np.bool_)
    for window, tap, shape in ((rows, taps[0], (-1, 1)), (columns, taps[1], (1, -1))):
        bounds = np.array([window.taps(i) for i in range(window.count)]).reshape(-1, 2)
        inside &= (tap >= bounds[:, 0].reshape(shape)) & (tap < bounds[:, 1].reshape(shape))
    top, left = starts(rows, columns)
    h, w = top + taps[0] * rows.step, left + taps[1] * columns.step
    n, c, _, _ = np.nonzero(inside)
    np.add.at(dx, (n, c, h[inside], w[inside]), ct[inside])
    return dx.astype(ct.dtype)


def starts(rows: Window, columns: Window) -> tuple[Array, Array]:
    """Where windows start, as a column and a row."""
    top = np.array([rows.start(i) for i in range(rows.count)])[:, None]
    return top, np.array([columns.start(j) for j in range(columns.count)])[None, :]


def indexed(types: Sequence[TensorType]) -> None:
    """An int32 index for every cotangent, or an error."""
    index, ct = types
    if index.dtype is not int32 or index.shape != ct.shape:
        raise DtypeError(f"takes an int32 index for every cotangent, got {index} and {ct}")


# ---- functions --------------------------------------------------------------------------------


def max_pool2d(
    x: Value,
    kernel: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
) -> Value:
    """Largest of each window; the stride is the kernel by default."""
    size, sides = pair_of(kernel), sides_of(padding)
    step = size if stride is None else pair_of(stride)
    return emit_all(MaxPool2d(size, step, sides, pair_of(dilation), ceil_mode), x)[0]


def global_max_pool2d(x: Value) -> Value:
    """Largest over height and width, as [N,C,1,1]."""
    return adaptive_max_pool2d(x, 1)


def adaptive_max_pool2d(x: Value, out_hw: Pair) -> Value:
    """Largest over windows that cover the input with this many outputs."""
    return emit_all(AdaptiveMaxPool2d(pair_of(out_hw)), x)[0]
