"""Comparisons, logic and selection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array, DType, bool_
from pocketgrad.base.errors import DtypeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Sample, TensorType, Value
from pocketgrad.ops.pointwise import Operand, Pointwise, bools, pair


@dataclass(frozen=True)
class Compare(Pointwise):
    """Base of comparisons: two operands, a bool."""

    arity = 2
    integers = True
    has_gradient = False

    def result(self, dtype: DType) -> DType:
        return bool_


@dataclass(frozen=True)
class Eq(Compare):
    """x equals y."""

    expr = "(x == y)"

    def scalar(self, x: Array, y: Array) -> Array:
        return np.equal(x, y)


@dataclass(frozen=True)
class Lt(Compare):
    """x is less than y."""

    expr = "(x < y)"

    def scalar(self, x: Array, y: Array) -> Array:
        return np.less(x, y)


@dataclass(frozen=True)
class Le(Compare):
    """x is at most y."""

    expr = "(x <= y)"

    def scalar(self, x: Array, y: Array) -> Array:
        return np.less_equal(x, y)


@dataclass(frozen=True)
class LogicalAnd(Compare):
    """Both, on bools."""

    expr = "(x & y)"

    def common(self, types: tuple[TensorType, ...]) -> DType:
        return bools(types)

    def scalar(self, x: Array, y: Array) -> Array:
        return np.logical_and(x, y)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls(), (TensorType((3, 17), bool_), TensorType((17,), bool_)), ints=(0, 2))


@dataclass(frozen=True)
class LogicalOr(Compare):
    """Either, on bools."""

    expr = "(x | y)"

    def common(self, types: tuple[TensorType, ...]) -> DType:
        return bools(types)

    def scalar(self, x: Array, y: Array) -> Array:
        return np.logical_or(x, y)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls(), (TensorType((3, 17), bool_), TensorType((17,), bool_)), ints=(0, 2))


@dataclass(frozen=True)
class LogicalNot(Pointwise):
    """Not x, on bools."""

    expr = "NOT(x)"
    has_gradient = False

    def common(self, types: tuple[TensorType, ...]) -> DType:
        return bools(types)

    def scalar(self, x: Array) -> Array:
        return np.logical_not(x)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls(), (TensorType((4, 17), bool_),), ints=(0, 2))


@dataclass(frozen=True)
class IsFinite(Pointwise):
    """Neither NaN nor infinite."""

    expr = "(isfinite(x) != 0)"
    has_gradient = False

    def result(self, dtype: DType) -> DType:
        return bool_

    def scalar(self, x: Array) -> Array:
        return np.isfinite(x)


@dataclass(frozen=True)
class Where(Pointwise):
    """y where the bool x holds, else z."""

    expr = "WHERE(x, y, z)"
    arity = 3
    integers = True

    def common(self, types: tuple[TensorType, ...]) -> DType:
        if types[0].dtype is not bool_:
            raise DtypeError(f"the condition must be bool, got {types[0]}; compare first")
        return super().common(types[1:])

    def scalar(self, x: Array, y: Array, z: Array) -> Array:
        return np.where(x, y, z)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return None, where(ins[0], ct, 0.0), where(ins[0], 0.0, ct)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for c, a, b in (((7,), (7,), (7,)), ((3, 1), (3, 33), ()), ((2, 5, 16), (16,), (5, 1))):
            shapes = TensorType(c, bool_), TensorType(a), TensorType(b)
            yield Sample(cls(), shapes, ints=(0, 2))


def eq(x: Operand, y: Operand) -> Value:
    """x == y."""
    return emit(Eq(), *pair(x, y))


def lt(x: Operand, y: Operand) -> Value:
    """x < y."""
    return emit(Lt(), *pair(x, y))


def le(x: Operand, y: Operand) -> Value:
    """x <= y."""
    return emit(Le(), *pair(x, y))


def gt(x: Operand, y: Operand) -> Value:
    """x > y."""
    return lt(y, x)


def ge(x: Operand, y: Operand) -> Value:
    """x >= y."""
    return le(y, x)


def ne(x: Operand, y: Operand) -> Value:
    """x != y."""
    return logical_not(eq(x, y))


def logical_and(x: Operand, y: Operand) -> Value:
    """Both, on bools."""
    return emit(LogicalAnd(), *pair(x, y))


def logical_or(x: Operand, y: Operand) -> Value:
    """Either, on bools."""
    return emit(LogicalOr(), *pair(x, y))


def logical_not(x: Value) -> Value:
    """Not x, on bools."""
    return emit(LogicalNot(), x)


def isfinite(x: Value) -> Value:
    """Neither NaN nor infinite."""
    return emit(IsFinite(), x)


def where(condition: Value, x: Operand, y: Operand) -> Value:
    """x where the condition holds, else y."""
    return emit(Where(), condition, *pair(x, y))
