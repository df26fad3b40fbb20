"""Resampling along one axis, nearest or linear, as torch.nn.functional.interpolate does it.

Positions are exact fractions of integers: output ``i`` lies at ``numerator(i) / denominator``, so
that every backend finds the same neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DtypeError, SettingError, ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value
from pocketgrad.ops.conv import Pair, pair_of, planes, widened
from pocketgrad.ops.move import normal_axis

MODES = ("nearest", "linear")

# axis, size of the result, x
_CASES = (
    (0, 1, (1,)),
    (0, 7, (3,)),
    (0, 3, (8,)),
    (1, 33, (2, 16, 3)),
    (2, 10, (2, 3, 5)),
    (0, 5, (1, 4)),
    (0, 1, (5,)),
)


@dataclass(frozen=True)
class Places:
    """Where ``count`` outputs read among ``size`` inputs."""

    size: int
    count: int
    mode: str
    align_corners: bool

    @property
    def denominator(self) -> int:
        """What numerators count in."""
        if self.mode == "nearest":
            return self.count
        return max(1, self.count - 1) if self.align_corners else 2 * self.count

    def numerator(self, i: int) -> int:
        """Position of output ``i``, times the denominator."""
        if self.mode == "nearest":
            return i * self.size
        if self.align_corners:
            return i * (self.size - 1) if self.count > 1 else 0
        return max(0, (2 * i + 1) * self.size - self.count)

    def c_numerator(self, i: str) -> str:
        """``numerator`` in C."""
        if self.mode == "nearest":
            return f"({i} * {self.size})"
        if self.align_corners:
            return f"({i} * {self.size - 1})" if self.count > 1 else "0"
        return f"max(0, (2 * {i} + 1) * {self.size} - {self.count})"

    @property
    def _line(self) -> tuple[int, int]:
        # numerator(i) is slope * i + offset, but not below 0
        if self.mode == "nearest" or self.align_corners:
            return max(1, self.size - (self.mode == "linear")), 0
        return 2 * self.size, self.size - self.count

    def readers(self, h: int) -> tuple[int, int]:
        """Outputs that may read input ``h``: the first, and one past the last. May be too wide."""
        (slope, offset), den = self._line, self.denominator
        first = max(0, (h - 1) * den - offset) // slope
        return first, min(self.count, max(0, (h + 1) * den - offset) // slope + 1)

    def c_readers(self, h: str) -> tuple[str, str]:
        """``readers`` in C."""
        (slope, offset), den = self._line, self.denominator
        first = f"(max(0, ({h} - 1) * {den} - ({offset})) / {slope})"
        past = f"max(0, ({h} + 1) * {den} - ({offset})) / {slope} + 1"
        return first, f"min({self.count}, {past})"

    def weights(self) -> tuple[Array, Array, Array]:
        """Lower and upper neighbour of every output, and the share of the upper."""
        found = [divmod(self.numerator(i), self.denominator) for i in range(self.count)]
        low, rest = np.array(found, np.intp).reshape(-1, 2).T
        share = rest / self.denominator if self.mode == "linear" else np.zeros(self.count)
        return low, np.minimum(low + 1, self.size - 1), share


@dataclass(frozen=True)
class Resize(Op):
    """Base of both: ``size`` is that of the result along ``axis``."""

    axis: int
    size: int
    mode: str
    align_corners: bool

    def resized(self, x: TensorType) -> TensorType:
        """The result's type."""
        if self.mode not in MODES:
            raise SettingError(f"mode '{self.mode}' is none of {', '.join(MODES)}")
        if not 0 <= self.axis < len(x.shape) or not x.dtype.is_float:
            raise DtypeError(f"takes floats with an axis {self.axis}, got {x}")
        if self.size < 1 or x.shape[self.axis] < 1:
            raise ShapeError(f"cannot resize axis {self.axis} of {x} to {self.size}")
        return TensorType((*x.shape[: self.axis], self.size, *x.shape[self.axis + 1 :]), x.dtype)

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        return (self.resized(types[0]),)

    def split(self, x: Array, size: int) -> Array:
        """x as [before, size, after]."""
        after = prod(x.shape[self.axis + 1 :])
        return widened(x).reshape(prod(x.shape[: self.axis]), size, after)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        taps = 4 if self.mode == "linear" else 1
        return Cost(taps * max(ins[0].size, outs[0].size), ins[0].nbytes + outs[0].nbytes)


@dataclass(frozen=True)
class Resize1d(Resize):
    """x resampled to ``size`` along one axis."""

    def places(self, size: int) -> Places:
        """Geometry for an input of this size."""
        return Places(size, self.size, self.mode, self.align_corners)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        low, high, share = self.places(x.shape[self.axis]).weights()
        wide = self.split(x, x.shape[self.axis])
        part = share[:, None].astype(wide.dtype)
        y = wide[:, low] * (1 - part) + wide[:, high] * part if part.any() else wide[:, low]
        return (y.astype(x.dtype).reshape(self.infer(TensorType(x.shape))[0].shape),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        size = inputs[0].shape[self.axis]
        grad = Resize1dGrad(self.axis, size, self.mode, self.align_corners)
        return (None if cts[0] is None else emit(grad, cts[0]),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for mode, corners in (("nearest", False), ("linear", False), ("linear", True)):
            for axis, size, shape in _CASES:
                yield Sample(cls(axis, size, mode, corners), (TensorType(shape),))


@dataclass(frozen=True)
class Resize1dGrad(Resize):
    """From the cotangent of the resampled value to that of x, which has ``size`` along the axis."""

    def places(self, count: int) -> Places:
        """Geometry for a cotangent of this size."""
        return Places(self.size, count, self.mode, self.align_corners)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        (ct,) = arrays
        low, high, share = self.places(ct.shape[self.axis]).weights()
        wide = self.split(ct, ct.shape[self.axis])
        part = share[:, None].astype(wide.dtype)
        dx = np.zeros((self.size, wide.shape[0], wide.shape[2]), wide.dtype)
        np.add.at(dx, low, np.swapaxes(wide * (1 - part), 0, 1))
        np.add.at(dx, high, np.swapaxes(wide * part, 0, 1))
        shape = self.infer(TensorType(ct.shape))[0].shape
        return (np.ascontiguousarray(np.swapaxes(dx, 0, 1)).reshape(shape).astype(ct.dtype),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        size = inputs[0].shape[self.axis]
        forward = Resize1d(self.axis, size, self.mode, self.align_corners)
        return (None if cts[0] is None else emit(forward, cts[0]),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for sample in Resize1d.samples():
            assert isinstance(sample.op, Resize1d)
            op, (x,) = sample.op, sample.ins
            grad = cls(op.axis, x.shape[op.axis], op.mode, op.align_corners)
            yield Sample(grad, op.infer(x))


# ---- functions --------------------------------------------------------------------------------


def resize(
    x: Value, axis: int, size: int, mode: str = "linear", align_corners: bool = False
) -> Value:
    """x resampled to a size along one axis."""
    axis = normal_axis(axis, len(x.shape))
    if size == x.shape[axis]:
        return x
    return emit(Resize1d(axis, size, mode, align_corners), x)


def upsample_nearest2d(x: Value, out_hw: Pair) -> Value:
    """Each pixel takes its nearest neighbour; x is [N,C,H,W]."""
    planes((x.type,))
    h, w = pair_of(out_hw)
    return resize(resize(x, 3, w, "nearest"), 2, h, "nearest")


def upsample_bilinear2d(x: Value, out_hw: Pair, align_corners: bool = False) -> Value:
    """Each pixel mixes its four neighbours; x is [N,C,H,W]."""
    planes((x.type,))
    h, w = pair_of(out_hw)
    across = resize(x, 3, w, "linear", align_corners)
    return resize(across, 2, h, "linear", align_corners)
