"""Reductions along axes, and repeating along axes: each is the other's gradient.

The reduced axes are dropped, or kept as size 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from pocketgrad.base.dtypes import Array, int32
from pocketgrad.base.errors import DtypeError, ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value
from pocketgrad.ops.move import Movement, normal_axis, reshape


@dataclass(frozen=True)
class Reduction(Op):
    """Base: combine elements along ``axes`` (ascending). ``combine`` is OpenCL C on a and b."""

    axes: tuple[int, ...]
    keepdims: bool = False
    combine: ClassVar[str]
    start: ClassVar[float]  # the neutral element; infinite ones stand for the extreme of the type

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        if list(self.axes) != sorted(set(self.axes)) or any(
            not 0 <= a < len(x.shape) for a in self.axes
        ):
            raise ShapeError(f"axes {self.axes} are not distinct, ascending axes of {x}")
        if x.dtype.nbytes < 4 and not x.dtype.is_float:
            raise DtypeError(f"cannot reduce {x}; cast() it to int32 or float32 first")
        return (TensorType(self.kept(x.shape), x.dtype),)

    def kept(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result."""
        if self.keepdims:
            return tuple(1 if i in self.axes else n for i, n in enumerate(shape))
        return tuple(n for i, n in enumerate(shape) if i not in self.axes)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(ins[0].size, ins[0].nbytes + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        cases: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
            ((1,), (0,)), ((17,), (0,)), ((3, 33), (1,)), ((33, 3), (0,)), ((2, 5, 16), (1,)),
            ((2, 5, 7), (0, 2)), ((4, 3, 6, 5), (0, 2, 3)), ((65, 31), (0, 1)),
        )  # fmt: skip
        for shape, axes in cases:
            yield Sample(cls(axes), (TensorType(shape),))
        yield Sample(cls((0, 2), keepdims=True), (TensorType((3, 2, 9)),))
        yield Sample(cls((1,)), (TensorType((4, 37), int32),), ints=(-9, 9))


@dataclass(frozen=True)
class Sum(Reduction):
    """Sum along axes."""

    combine = "a + b"
    start = 0.0

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        wide = np.float32 if x.dtype == np.float16 else x.dtype
        total = np.sum(x, axis=self.axes, keepdims=self.keepdims, dtype=wide)
        return (np.asarray(total, x.dtype),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        (x,) = inputs
        if cts[0] is None:
            return (None,)
        column = tuple(1 if i in self.axes else n for i, n in enumerate(x.shape))
        return (broadcast_to(reshape(cts[0], column), x.shape),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample(cls((0,)), (TensorType((0, 3)),))


@dataclass(frozen=True)
class Broadcast(Movement):
    """Repeat along axes of size 1 and new leading axes."""

    shape: tuple[int, ...]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        tail = self.shape[len(self.shape) - len(x.shape) :] if x.shape else ()
        fits = len(tail) == len(x.shape) and all(
            n in (1, m) for n, m in zip(x.shape, tail, strict=True)
        )
        if not fits:
            raise ShapeError(f"cannot repeat {x} to shape {self.shape}")
        return (TensorType(self.shape, x.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.ascontiguousarray(np.broadcast_to(arrays[0], self.shape)),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        return (None if cts[0] is None else unbroadcast(cts[0], inputs[0].shape),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        flat = (((1,), (7,)), ((), (3, 4)), ((4,), (2, 4)), ((1, 2), (0, 2)))
        for a, b in (*flat, ((3, 1, 5), (3, 4, 5))):
            yield Sample(cls(b), (TensorType(a),))


def normal_axes(axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes as an ascending tuple; None means all."""
    if axes is None:
        return tuple(range(rank))
    given = (axes,) if isinstance(axes, int) else axes
    return tuple(sorted({normal_axis(a, rank) for a in given}))


def sum_(x: Value, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    """Sum along axes (all by default)."""
    chosen = normal_axes(axes, len(x.shape))
    return emit(Sum(chosen, keepdims), x) if chosen else x


def count(x: Value, axes: int | Sequence[int] | None = None) -> int:
    """How many elements a reduction along these axes combines."""
    return prod(x.shape[a] for a in normal_axes(axes, len(x.shape)))


def broadcast_to(x: Value, shape: Sequence[int]) -> Value:
    """Repeat to a shape."""
    return x if tuple(shape) == x.shape else emit(Broadcast(tuple(shape)), x)


def unbroadcast(ct: Value, shape: tuple[int, ...]) -> Value:
    """Sum a cotangent over the axes along which an operand of ``shape`` was broadcast."""
    if ct.shape == shape:
        return ct
    lead = len(ct.shape) - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and ct.shape[lead + i] != 1
    )
    return reshape(sum_(ct, axes, keepdims=True) if axes else ct, shape)
