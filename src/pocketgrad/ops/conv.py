"""Convolution in two dimensions, its two gradients, and what is made of them.

The three ops are each other's gradients. Layouts are logical: x [N,C,H,W], w [K,C/groups,R,S],
y [N,K,OH,OW]. A bias is an addition, left to fusion; a transposed convolution is Conv2dGradInput.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DtypeError, ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.move import reshape
from pocketgrad.ops.window import Strided, strided

Pair = int | Sequence[int]

# stride, padding, dilation, groups, x, w; chosen to be ragged against any tile
_CASES: tuple[tuple[Any, ...], ...] = (
    ((1, 1), (0, 0, 0, 0), (1, 1), 1, (1, 1, 1, 1), (1, 1, 1, 1)),
    ((1, 1), (0, 0, 0, 0), (1, 1), 1, (2, 3, 7, 5), (17, 3, 1, 1)),
    ((1, 1), (1, 1, 1, 1), (1, 1), 1, (2, 5, 9, 8), (7, 5, 3, 3)),
    ((2, 3), (2, 1, 2, 1), (1, 1), 1, (1, 4, 11, 13), (3, 4, 5, 3)),
    ((1, 2), (1, 0, 2, 3), (2, 1), 1, (2, 2, 8, 9), (4, 2, 3, 2)),
    ((2, 2), (0, 0, 0, 0), (1, 1), 1, (3, 3, 6, 6), (2, 3, 1, 1)),
    ((1, 1), (1, 1, 1, 1), (1, 1), 3, (2, 6, 5, 7), (9, 2, 3, 3)),
    ((2, 2), (1, 1, 1, 1), (1, 1), 7, (1, 7, 9, 9), (7, 1, 3, 3)),
    ((1, 1), (2, 2, 2, 2), (2, 2), 4, (1, 4, 6, 7), (8, 1, 3, 3)),
    ((1, 1), (1, 1, 1, 1), (1, 1), 1, (1, 17, 7, 7), (33, 17, 3, 3)),
    ((1, 1), (0, 0, 0, 0), (1, 1), 1, (0, 3, 5, 5), (4, 3, 3, 3)),
)


@dataclass(frozen=True)
class Conv(Op):
    """Base of the three: ``padding`` is top, left, bottom, right."""

    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int

    def windows(self, hw: Sequence[int], rs: Sequence[int]) -> tuple[Strided, Strided]:
        """Window geometry along both axes for an input and kernel of these sizes."""
        top, left, bottom, right = self.padding
        (sh, sw), (dh, dw) = self.stride, self.dilation
        rows = strided(hw[0], rs[0], sh, (top, bottom), dh, axis="height")
        return rows, strided(hw[1], rs[1], sw, (left, right), dw, axis="width")

    def taps(self, hw: Sequence[int], rs: Sequence[int]) -> Iterator[tuple[int, int, Any]]:
        """Each kernel position, with the slice of the padded input that it multiplies."""
        rows, columns = self.windows(hw, rs)
        for r in range(rs[0]):
            for s in range(rs[1]):
                yield r, s, (..., _along(rows, r), _along(columns, s))

    def padded(self, x: Array) -> Array:
        """x as [N, groups, C/groups, H, W] surrounded with zeros; half precision widened."""
        n, c, *hw = x.shape
        top, left, bottom, right = self.padding
        x = widened(x).reshape(n, self.groups, c // self.groups, *hw)
        return np.pad(x, ((0, 0), (0, 0), (0, 0), (top, bottom), (left, right)))

    def split(self, w: Array) -> Array:
        """w as [groups, K/groups, C/groups, R, S]; half precision widened."""
        return widened(w).reshape(self.groups, w.shape[0] // self.groups, *w.shape[1:])

    def work(self, x: TensorType, w: TensorType, y: TensorType) -> Cost:
        """Two operations per output pixel and weight of its channel; every tensor moved once."""
        return Cost(2 * y.size * prod(w.shape[1:]), x.nbytes + w.nbytes + y.nbytes)

    def check(self, x: tuple[int, ...], w: tuple[int, ...]) -> None:
        """Channels and groups fit."""
        if self.groups < 1 or x[1] != w[1] * self.groups or w[0] % self.groups:
            raise ShapeError(
                f"input {x} and weight {w} with groups={self.groups} do not fit: the weight is "
                "[out channels, in channels / groups, height, width], and groups divides both"
            )

    def check_output(self, x: tuple[int, ...], w: tuple[int, ...], y: TensorType) -> None:
        """y has the shape that the convolution of x with w gives."""
        rows, columns = self.windows(x[2:], w[2:])
        expected = (x[0], w[0], rows.count, columns.count)
        if y.shape != expected:
            raise ShapeError(f"input {x} and weight {w} give an output {expected}, got {y}")

    def forward(self) -> Conv2d:
        """The convolution itself."""
        return Conv2d(self.stride, self.padding, self.dilation, self.groups)


@dataclass(frozen=True)
class Conv2d(Conv):
    """y[n,k,i,j] = sum over c,r,s of w[k,c,r,s] * x[n,c, i*stride - top + r*dilation, …]."""

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        x, w = planes(types)
        self.check(x.shape, w.shape)
        rows, columns = self.windows(x.shape[2:], w.shape[2:])
        return (TensorType((x.shape[0], w.shape[0], rows.count, columns.count), x.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        x, w = arrays
        rows, columns = self.windows(x.shape[2:], w.shape[2:])
        xs, ws = self.padded(x), self.split(w)
        y = np.zeros((*xs.shape[:2], ws.shape[1], rows.count * columns.count), xs.dtype)
        for r, s, cut in self.taps(x.shape[2:], w.shape[2:]):
            y += ws[..., r, s] @ flat(xs[cut])
        return (y.reshape(x.shape[0], w.shape[0], rows.count, columns.count).astype(x.dtype),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        (x, w), ct = inputs, cts[0]
        if ct is None:
            return None, None
        return _grad_input(self, ct, w, x.shape), _grad_weight(self, x, ct, w.shape)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(ins[0], ins[1], outs[0])

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for stride, padding, dilation, groups, x, w in _CASES:
            op = cls(stride, padding, dilation, groups)
            yield Sample(op, (TensorType(x), TensorType(w)))


@dataclass(frozen=True)
class Conv2dGradInput(Conv):
    """The gradient for x of size ``hw``, from that of y and the weights."""

    hw: tuple[int, int]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        ct, w = planes(types)
        x = (ct.shape[0], w.shape[1] * self.groups, *self.hw)
        self.check(x, w.shape)
        self.check_output(x, w.shape, ct)
        return (TensorType(x, ct.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        ct, w = arrays
        ws, n = self.split(w), ct.shape[0]
        cts = widened(ct).reshape(n, self.groups, ws.shape[1], prod(ct.shape[2:]))
        dx = self.padded(np.zeros((n, w.shape[1] * self.groups, *self.hw), ct.dtype))
        for r, s, cut in self.taps(self.hw, w.shape[2:]):
            part = np.swapaxes(ws[..., r, s], -1, -2) @ cts
            dx[cut] += part.reshape(*part.shape[:3], *ct.shape[2:])
        top, left = self.padding[:2]
        dx = dx[..., top : top + self.hw[0], left : left + self.hw[1]]
        return (dx.reshape(n, w.shape[1] * self.groups, *self.hw).astype(ct.dtype),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        (ct, w), g = inputs, cts[0]
        if g is None:
            return None, None
        return emit(self.forward(), g, w), _grad_weight(self, g, ct, w.shape)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(outs[0], ins[1], ins[0])

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for op, x, w, y in _forward_cases():
            grad = cls(**op.attributes(), hw=(x.shape[2], x.shape[3]))
            yield Sample(grad, (y, w))


@dataclass(frozen=True)
class Conv2dGradWeight(Conv):
    """The gradient for w with a kernel of size ``rs``, from x and the gradient of y."""

    rs: tuple[int, int]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        x, ct = planes(types)
        w = (ct.shape[1], x.shape[1] // max(1, self.groups), *self.rs)
        self.check(x.shape, w)
        self.check_output(x.shape, w, ct)
        return (TensorType(w, x.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        x, ct = arrays
        n, k = ct.shape[:2]
        xs = self.padded(x)
        cts = widened(ct).reshape(n, self.groups, k // self.groups, prod(ct.shape[2:]))
        dw = np.zeros((*cts.shape[1:3], xs.shape[2], *self.rs), xs.dtype)
        for r, s, cut in self.taps(x.shape[2:], self.rs):
            dw[..., r, s] = (cts @ np.swapaxes(flat(xs[cut]), -1, -2)).sum(0)
        return (dw.reshape(k, *dw.shape[2:]).astype(x.dtype),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        (x, ct), g = inputs, cts[0]
        if g is None:
            return None, None
        return _grad_input(self, ct, g, x.shape), emit(self.forward(), x, g)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(ins[0], outs[0], ins[1])

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for op, x, w, y in _forward_cases():
            grad = cls(**op.attributes(), rs=(w.shape[2], w.shape[3]))
            yield Sample(grad, (x, y))


def _forward_cases() -> Iterator[tuple[Conv2d, TensorType, TensorType, TensorType]]:
    for sample in Conv2d.samples():
        assert isinstance(sample.op, Conv2d)
        (x, w), (y,) = sample.ins, sample.op.infer(*sample.ins)
        yield sample.op, x, w, y


def _grad_input(like: Conv, ct: Value, w: Value, x: tuple[int, ...]) -> Value:
    forward = like.forward().attributes()
    return emit(Conv2dGradInput(**forward, hw=(x[2], x[3])), ct, w)


def _grad_weight(like: Conv, x: Value, ct: Value, w: tuple[int, ...]) -> Value:
    forward = like.forward().attributes()
    return emit(Conv2dGradWeight(**forward, rs=(w[2], w[3])), x, ct)


def _along(window: Strided, tap: int) -> slice:
    first = tap * window.dilation
    return slice(first, first + (window.count - 1) * window.stride + 1, window.stride)


def planes(types: Sequence[TensorType]) -> Sequence[TensorType]:
    """Float tensors of four axes and one element type, or an error."""
    for t in types:
        if len(t.shape) != 4:
            raise ShapeError(f"takes [batch, channels, height, width], got {t}; reshape() it first")
        if t.dtype is not types[0].dtype or not t.dtype.is_float:
            found = " and ".join(map(str, types))
            raise DtypeError(f"takes floats of one type, got {found}; cast() them first")
    return types


def flat(x: Array) -> Array:
    """The last two axes as one."""
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def widened(x: Array) -> Array:
    """Half precision is stored, not computed with."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


# ---- functions --------------------------------------------------------------------------------


def pair_of(sizes: Pair) -> tuple[int, int]:
    """One number for both axes, or (height, width)."""
    if isinstance(sizes, int):
        return sizes, sizes
    if len(sizes) != 2:
        raise ShapeError(f"takes one number, or one for height and one for width, got {sizes}")
    return sizes[0], sizes[1]


def sides_of(padding: Pair) -> tuple[int, int, int, int]:
    """One number, (height, width), or (top, left, bottom, right)."""
    if not isinstance(padding, int) and len(padding) == 4:
        return padding[0], padding[1], padding[2], padding[3]
    h, w = pair_of(padding)
    return h, w, h, w


def conv2d(
    x: Value,
    w: Value,
    bias: Value | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Value:
    """Convolution of x [N,C,H,W] with w [K,C/groups,R,S], plus a bias [K]."""
    op = Conv2d(pair_of(stride), sides_of(padding), pair_of(dilation), groups)
    return biased(emit(op, x, w), bias)


def conv1d(
    x: Value,
    w: Value,
    bias: Value | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Value:
    """Convolution of x [N,C,L] with w [K,C/groups,S], plus a bias [K]."""
    if len(x.shape) != 3 or len(w.shape) != 3:
        raise ShapeError(f"conv1d takes [batch, channels, length], got {x.type} and {w.type}")
    rows, kernels = (reshape(v, (*v.shape[:2], 1, v.shape[2])) for v in (x, w))
    op = Conv2d((1, stride), (0, padding, 0, padding), (1, dilation), groups)
    y = emit(op, rows, kernels)
    return biased(reshape(y, (*y.shape[:2], y.shape[3])), bias)


def conv_transpose2d(
    x: Value,
    w: Value,
    bias: Value | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    output_padding: Pair = 0,
    groups: int = 1,
    dilation: Pair = 1,
) -> Value:
    """The gradient of a convolution as an operation: x [N,C,H,W], w [C,K/groups,R,S], bias [K]."""
    (sh, sw), (dh, dw), (eh, ew) = pair_of(stride), pair_of(dilation), pair_of(output_padding)
    top, left, bottom, right = sides_of(padding)
    planes((x.type, w.type))
    if not (0 <= eh < max(sh, dh) and 0 <= ew < max(sw, dw)):
        raise ShapeError(
            f"output_padding {(eh, ew)} must be at least 0 and smaller than stride {(sh, sw)} or "
            f"dilation {(dh, dw)}"
        )
    h = (x.shape[2] - 1) * sh - top - bottom + dh * (w.shape[2] - 1) + eh + 1
    width = (x.shape[3] - 1) * sw - left - right + dw * (w.shape[3] - 1) + ew + 1
    if h < 1 or width < 1:
        raise ShapeError(f"padding {padding} leaves no output of {x.type} with weight {w.type}")
    sides = (top, left, bottom, right)
    y = emit(Conv2dGradInput((sh, sw), sides, (dh, dw), groups, (h, width)), x, w)
    return biased(y, bias)


def biased(y: Value, bias: Value | None) -> Value:
    """y plus one number per channel (axis 1)."""
    if bias is None:
        return y
    if bias.shape != (y.shape[1],):
        raise ShapeError(f"a bias for {y.type} has shape ({y.shape[1]},), got {bias.type}")
    return add(y, reshape(bias, (y.shape[1], *(1,) * (len(y.shape) - 2))))
