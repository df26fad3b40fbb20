"""Average pooling over strided or adaptive windows, and its gradients. Values are [N,C,H,W]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Sample, TensorType, Value
from pocketgrad.ops.conv import Pair, pair_of, planes, sides_of, widened
from pocketgrad.ops.extremes import mean
from pocketgrad.ops.pool import AdaptivePool, StridedPool
from pocketgrad.ops.window import Window


@dataclass(frozen=True)
class AvgPool2d(StridedPool):
    """Average of each window; ``count_include_pad`` divides by the padding's taps too."""

    count_include_pad: bool

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        return (TensorType(self.pooled(types[0]), types[0].dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (averaged(arrays[0], *self.windows(arrays[0].shape[2:]), self.count_include_pad),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        h, w = inputs[0].shape[2:]
        return (
            None if cts[0] is None else emit(AvgPool2dGrad(**self.attributes(), hw=(h, w)), cts[0]),
        )

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(ins[0], outs[0], ins[0].nbytes + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for attributes, x in cls.cases():
            for include in (True, False):
                yield Sample(cls(**attributes, count_include_pad=include), (x,))


@dataclass(frozen=True)
class AvgPool2dGrad(StridedPool):
    """From the cotangent of y to that of x."""

    count_include_pad: bool
    hw: tuple[int, int]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        return (self.spread(types[0], self.hw),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (shared(arrays[0], *self.windows(self.hw), self.count_include_pad),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        forward = {k: v for k, v in self.attributes().items() if k != "hw"}
        return (None if cts[0] is None else emit(AvgPool2d(**forward), cts[0]),)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(outs[0], ins[0], ins[0].nbytes + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for forward in AvgPool2d.samples():
            attributes, (x,) = forward.op.attributes(), forward.ins
            h, w = x.shape[2:]
            yield Sample(cls(**attributes, hw=(h, w)), forward.op.infer(x))


@dataclass(frozen=True)
class AdaptiveAvgPool2d(AdaptivePool):
    """Average of each window."""

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        return (TensorType(self.pooled(types[0]), types[0].dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (averaged(arrays[0], *self.windows(arrays[0].shape[2:]), False),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        h, w = inputs[0].shape[2:]
        return (
            None if cts[0] is None else emit(AdaptiveAvgPool2dGrad(self.out_hw, (h, w)), cts[0]),
        )

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(ins[0], outs[0], ins[0].nbytes + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for attributes, x in cls.cases():
            yield Sample(cls(**attributes), (x,))


@dataclass(frozen=True)
class AdaptiveAvgPool2dGrad(AdaptivePool):
    """From the cotangent of y to that of x."""

    hw: tuple[int, int]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        return (self.spread(types[0], self.hw),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (shared(arrays[0], *self.windows(self.hw), False),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        return (None if cts[0] is None else emit(AdaptiveAvgPool2d(self.out_hw), cts[0]),)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return self.work(outs[0], ins[0], ins[0].nbytes + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for attributes, x in cls.cases():
            h, w = x.shape[2:]
            grad = cls(**attributes, hw=(h, w))
            yield Sample(grad, AdaptiveAvgPool2d(**attributes).infer(x))


def averaged(x: Array, rows: Window, columns: Window, padded: bool) -> Array:
    """Sum over windows along width, then height, then divide."""
    wide = widened(x)
    across = np.stack([wide[..., cut].sum(3) for cut in columns.cuts()], 3)
    total = np.stack([across[..., cut, :].sum(2) for cut in rows.cuts()], 2)
    y: Array = total / divisors(rows, columns, padded).astype(wide.dtype)
    return y.astype(x.dtype)


def shared(ct: Array, rows: Window, columns: Window, padded: bool) -> Array:
    """Each cotangent, divided, added to all elements of its window."""
    wide = widened(ct)
    part = wide / divisors(rows, columns, padded).astype(wide.dtype)
    down = np.zeros((*ct.shape[:2], rows.size, columns.count), wide.dtype)
    for i, cut in enumerate(rows.cuts()):
        down[..., cut, :] += part[..., i : i + 1, :]
    dx = np.zeros((*ct.shape[:2], rows.size, columns.size), wide.dtype)
    for j, cut in enumerate(columns.cuts()):
        dx[..., cut] += down[..., j : j + 1]
    return dx.astype(ct.dtype)


def divisors(rows: Window, columns: Window, padded: bool) -> Array:
    """By what each output's sum is divided."""
    h = np.array([rows.extent(i, padded) for i in range(rows.count)])
    return np.outer(h, [columns.extent(j, padded) for j in range(columns.count)])


# ---- functions --------------------------------------------------------------------------------


def avg_pool2d(
    x: Value,
    kernel: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    """Average of each window; the stride is the kernel by default."""
    size, sides = pair_of(kernel), sides_of(padding)
    step = size if stride is None else pair_of(stride)
    return emit(AvgPool2d(size, step, sides, (1, 1), ceil_mode, count_include_pad), x)


def adaptive_avg_pool2d(x: Value, out_hw: Pair) -> Value:
    """Average over windows that cover the input with this many outputs."""
    planes((x.type,))
    out, size = pair_of(out_hw), x.shape[2:]
    if 0 in (*out, *size) or any(n % m for n, m in zip(size, out, strict=True)):
        return emit(AdaptiveAvgPool2d(out), x)
    if out == (1, 1):
        return global_avg_pool2d(x)  # a reduction, which shares its launch with what follows
    return avg_pool2d(x, (size[0] // out[0], size[1] // out[1])) if out != size else x


def global_avg_pool2d(x: Value, keepdims: bool = True) -> Value:
    """Average over height and width."""
    planes((x.type,))
    return mean(x, (2, 3), keepdims)
