"""Values made from nothing: constants, counters along an axis, random numbers.

Random numbers are a function of (seed, step, stream, position) by Philox 4x32 with 7 rounds
(Salmon et al., SC 2011), so they can be made again in the backward pass and are never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from pocketgrad.base.dtypes import Array, DType, float32, int32
from pocketgrad.base.errors import DtypeError, ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value

PHILOX_M = (0xD2511F53, 0xCD9E8D57)
PHILOX_W = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 7


@dataclass(frozen=True)
class Constant(Op):
    """One number, broadcast to a shape; never stored."""

    value: float
    dtype: DType = float32
    shape: tuple[int, ...] = ()
    has_gradient = False

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        if types:
            raise ShapeError(f"takes no operands, got {len(types)}")
        return (TensorType(self.shape, self.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.full(self.shape, self.value, self.dtype.numpy),)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(0, 0)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls(2.5), ())
        yield Sample(cls(111), ())  # a whole number, given as Python gives it
        yield Sample(cls(-3, int32, (2, 9)), ())


@dataclass(frozen=True)
class Iota(Op):
    """0, 1, 2 … along one axis of a shape, the same along the others."""

    shape: tuple[int, ...]
    axis: int
    dtype: DType = int32
    has_gradient = False

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        if not 0 <= self.axis < len(self.shape):
            raise ShapeError(f"axis {self.axis} is not in shape {self.shape}")
        return (TensorType(self.shape, self.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        along = np.arange(self.shape[self.axis], dtype=self.dtype.numpy)
        column = along.reshape(-1, *(1,) * (len(self.shape) - self.axis - 1))
        return (np.ascontiguousarray(np.broadcast_to(column, self.shape)),)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(0, 0)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for shape, axis in (((1,), 0), ((17,), 0), ((3, 33), 0), ((3, 33), 1), ((2, 5, 4), 1)):
            yield Sample(cls(shape, axis), ())


@dataclass(frozen=True)
class Uniform(Op):
    """Uniform numbers in [0, 1), 24 bits; inputs are the seed and the step, both int32 scalars."""

    shape: tuple[int, ...]
    stream: int  # a number of its own for every use in a graph
    dtype: DType = float32
    has_gradient = False

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        if len(types) != 2 or any(t != TensorType((), int32) for t in types):
            raise DtypeError("takes the seed and the step, both int32 scalars")
        return (TensorType(self.shape, self.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        seed, step = (int(a) & 0xFFFFFFFF for a in arrays)
        counter = np.arange(prod(self.shape), dtype=np.uint64)
        word = philox(counter, step, self.stream, seed)
        scaled = (word >> np.uint64(8)).astype(np.float64) * 2.0**-24
        return (scaled.astype(self.dtype.numpy).reshape(self.shape),)

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(10 * PHILOX_ROUNDS * outs[0].size, 0)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for shape in ((1,), (33,), (4, 65)):
            yield Sample(cls(shape, stream=3), (TensorType((), int32),) * 2, ints=(0, 1000))


def philox(counter: Array, step: int, stream: int, seed: int) -> Array:
    """First word of Philox4x32-7 on the counter (position, step, stream, 0) with key (seed, 0)."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0 = counter & mask
    c1, c2, c3 = (np.full_like(c0, v) for v in (step, stream, 0))
    k0, k1 = seed, 0
    for _ in range(PHILOX_ROUNDS):
        p0, p1 = c0 * np.uint64(PHILOX_M[0]), c2 * np.uint64(PHILOX_M[1])
        c0, c1, c2, c3 = (
            (p1 >> half) ^ c1 ^ np.uint64(k0),
            p1 & mask,
            (p0 >> half) ^ c3 ^ np.uint64(k1),
            p0 & mask,
        )
        k0, k1 = (k0 + PHILOX_W[0]) & 0xFFFFFFFF, (k1 + PHILOX_W[1]) & 0xFFFFFFFF
    return c0


def constant(value: float, dtype: DType = float32, shape: tuple[int, ...] = ()) -> Value:
    """A number as a value."""
    if not dtype.is_float and value != int(value):
        raise DtypeError(f"{value} is not a {dtype}; cast() the other operand to float32 first")
    return emit(Constant(value, dtype, shape))


def iota(shape: tuple[int, ...], axis: int, dtype: DType = int32) -> Value:
    """Positions along an axis."""
    return emit(Iota(shape, axis, dtype))


def uniform(
    shape: tuple[int, ...], seed: Value, step: Value, stream: int, dtype: DType = float32
) -> Value:
    """Random numbers in [0, 1)."""
    return emit(Uniform(shape, stream, dtype), seed, step)
