"""Arithmetic, rounding, extremes of two, and conversion between element types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array, DType, bool_, float32, int32, uint8
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Sample, TensorType, Value
from pocketgrad.ops.compare import eq, gt, lt, where
from pocketgrad.ops.pointwise import Operand, Pointwise, pair


@dataclass(frozen=True)
class Neg(Pointwise):
    """-x."""

    expr = "-x"
    integers = True

    def scalar(self, x: Array) -> Array:
        return -x

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (neg(ct),)


@dataclass(frozen=True)
class Abs(Pointwise):
    """|x|; the gradient at 0 is 0, as in PyTorch."""

    expr = "fabs(x)"
    ranges = ((0.1, 2.0), (-2.0, -0.1))

    def scalar(self, x: Array) -> Array:
        return np.abs(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (mul(ct, sign(ins[0])),)


@dataclass(frozen=True)
class Sign(Pointwise):
    """-1, 0 or 1."""

    expr = "sign(x)"
    ranges = ((0.1, 2.0), (-2.0, -0.1))
    has_gradient = False

    def scalar(self, x: Array) -> Array:
        return np.sign(x)


@dataclass(frozen=True)
class Floor(Pointwise):
    """Largest whole number not above x."""

    expr = "floor(x)"
    ranges = ((0.1, 0.9), (-1.9, -1.1))
    has_gradient = False

    def scalar(self, x: Array) -> Array:
        return np.floor(x)


@dataclass(frozen=True)
class Ceil(Pointwise):
    """Smallest whole number not below x."""

    expr = "ceil(x)"
    ranges = ((0.1, 0.9), (-1.9, -1.1))
    has_gradient = False

    def scalar(self, x: Array) -> Array:
        return np.ceil(x)


@dataclass(frozen=True)
class Round(Pointwise):
    """Nearest whole number, halves to even."""

    expr = "rint(x)"
    ranges = ((0.6, 1.4), (-1.4, -0.6))
    has_gradient = False

    def scalar(self, x: Array) -> Array:
        return np.rint(x)


@dataclass(frozen=True)
class Cast(Pointwise):
    """Change the element type; float to int truncates, to bool compares with 0."""

    dtype: DType = float32
    expr = "x"  # the generator converts registers by type
    integers = True

    def result(self, dtype: DType) -> DType:
        return self.dtype

    def scalar(self, x: Array) -> Array:
        return x.astype(self.dtype.numpy)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (self.scalar(*arrays),)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (cast(ct, ins[0].dtype) if ins[0].dtype.is_float else None,)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for source in (float32, int32, uint8, bool_):
            for target in (float32, int32, uint8, bool_):
                yield Sample(cls(target), (TensorType((3, 21), source),), 0.1, 5.0, ints=(0, 2))


@dataclass(frozen=True)
class Detach(Pointwise):
    """x, through which no gradient flows."""

    expr = "x"
    integers = True
    has_gradient = False

    def scalar(self, x: Array) -> Array:
        return x

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(0, ins[0].nbytes + outs[0].nbytes)


@dataclass(frozen=True)
class Binary(Pointwise):
    """Base of arithmetic on two operands."""

    arity = 2
    integers = True


@dataclass(frozen=True)
class Add(Binary):
    """x + y."""

    expr = "x + y"

    def scalar(self, x: Array, y: Array) -> Array:
        return x + y

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return ct, ct


@dataclass(frozen=True)
class Sub(Binary):
    """x - y."""

    expr = "x - y"

    def scalar(self, x: Array, y: Array) -> Array:
        return x - y

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return ct, neg(ct)


@dataclass(frozen=True)
class Mul(Binary):
    """x * y."""

    expr = "x * y"

    def scalar(self, x: Array, y: Array) -> Array:
        return x * y

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return mul(ct, ins[1]), mul(ct, ins[0])


@dataclass(frozen=True)
class Div(Binary):
    """x / y."""

    expr = "x / y"
    integers = False
    ranges = ((0.3, 2.0), (-2.0, -0.3))

    def scalar(self, x: Array, y: Array) -> Array:
        return x / y

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        over = div(ct, ins[1])
        return over, neg(mul(over, out))


@dataclass(frozen=True)
class Maximum(Binary):
    """The larger, NaN if either is; equal operands share the gradient, as in PyTorch."""

    expr = "WHERE((x > y) | (x != x), x, y)"

    def scalar(self, x: Array, y: Array) -> Array:
        return np.maximum(x, y)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return _split_at_ties(ins, ct, gt)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield from _apart(cls())


@dataclass(frozen=True)
class Minimum(Binary):
    """The smaller, NaN if either is; equal operands share the gradient, as in PyTorch."""

    expr = "WHERE((x < y) | (x != x), x, y)"

    def scalar(self, x: Array, y: Array) -> Array:
        return np.minimum(x, y)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return _split_at_ties(ins, ct, lt)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield from _apart(cls())


def _apart(op: Pointwise) -> Iterator[Sample]:
    for a, b in (((5,), (5,)), ((3, 33), (33,)), ((2, 1, 4), (1, 7, 4)), ((2, 0), (2, 0))):
        yield Sample(op, (TensorType(a), TensorType(b)))
    yield Sample(op, (TensorType((4, 9), int32),) * 2, ints=(-3, 4))


def _split_at_ties(
    ins: tuple[Value, ...], ct: Value, wins: Callable[[Operand, Operand], Value]
) -> tuple[Value | None, ...]:
    x, y = ins
    tied = where(eq(x, y), mul(ct, 0.5), 0.0)
    return where(wins(x, y), ct, tied), where(wins(y, x), ct, tied)


@dataclass(frozen=True)
class Mod(Binary):
    """Remainder with the sign of y, as in Python and PyTorch; y is not 0."""

    expr = "MOD(x, y)"
    ranges = ((0.3, 2.0),)
    has_gradient = False

    def scalar(self, x: Array, y: Array) -> Array:
        return np.mod(x, y)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls(), (TensorType((5, 19), int32),) * 2, ints=(1, 9))


def neg(x: Value) -> Value:
    """-x."""
    return emit(Neg(), x)


def abs_(x: Value) -> Value:
    """|x|."""
    return emit(Abs(), x)


def sign(x: Value) -> Value:
    """-1, 0 or 1."""
    return emit(Sign(), x)


def floor(x: Value) -> Value:
    """Round down."""
    return emit(Floor(), x)


def ceil(x: Value) -> Value:
    """Round up."""
    return emit(Ceil(), x)


def round_(x: Value) -> Value:
    """Round to nearest, halves to even."""
    return emit(Round(), x)


def cast(x: Value, dtype: DType) -> Value:
    """x in another element type."""
    return x if x.dtype is dtype else emit(Cast(dtype), x)


def detach(x: Value) -> Value:
    """x, through which no gradient flows."""
    return emit(Detach(), x)


def add(x: Operand, y: Operand) -> Value:
    """x + y."""
    return emit(Add(), *pair(x, y))


def sub(x: Operand, y: Operand) -> Value:
    """x - y."""
    return emit(Sub(), *pair(x, y))


def mul(x: Operand, y: Operand) -> Value:
    """x * y."""
    return emit(Mul(), *pair(x, y))


def div(x: Operand, y: Operand) -> Value:
    """x / y."""
    return emit(Div(), *pair(x, y))


def maximum(x: Operand, y: Operand) -> Value:
    """The larger of both."""
    return emit(Maximum(), *pair(x, y))


def minimum(x: Operand, y: Operand) -> Value:
    """The smaller of both."""
    return emit(Minimum(), *pair(x, y))


def mod(x: Operand, y: Operand) -> Value:
    """Remainder with the sign of y."""
    return emit(Mod(), *pair(x, y))
