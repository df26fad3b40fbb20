"""Exponentials, roots, trigonometry and the plain activations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Value
from pocketgrad.ops.arithmetic import Binary, add, div, mul, neg, sub
from pocketgrad.ops.compare import gt, where
from pocketgrad.ops.pointwise import Operand, Pointwise, pair


@dataclass(frozen=True)
class Exp(Pointwise):
    """e to the x."""

    expr = "exp(x)"
    flops = 8

    def scalar(self, x: Array) -> Array:
        return np.exp(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (mul(ct, out),)


@dataclass(frozen=True)
class Log(Pointwise):
    """Natural logarithm."""

    expr = "log(x)"
    ranges = ((0.2, 3.0),)
    flops = 8

    def scalar(self, x: Array) -> Array:
        return np.log(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (div(ct, ins[0]),)


@dataclass(frozen=True)
class Log1p(Pointwise):
    """log(1 + x), exact near 0."""

    expr = "log1p(x)"
    ranges = ((-0.5, 2.0),)
    flops = 8

    def scalar(self, x: Array) -> Array:
        return np.log1p(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (div(ct, add(ins[0], 1.0)),)


@dataclass(frozen=True)
class Expm1(Pointwise):
    """exp(x) - 1, exact near 0."""

    expr = "expm1(x)"
    flops = 8

    def scalar(self, x: Array) -> Array:
        return np.expm1(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (mul(ct, add(out, 1.0)),)


@dataclass(frozen=True)
class Sqrt(Pointwise):
    """Square root."""

    expr = "sqrt(x)"
    ranges = ((0.2, 3.0),)
    flops = 4

    def scalar(self, x: Array) -> Array:
        return np.sqrt(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (div(mul(ct, 0.5), out),)


@dataclass(frozen=True)
class Rsqrt(Pointwise):
    """1 / sqrt(x)."""

    expr = "(F(1.0f) / sqrt(x))"
    ranges = ((0.2, 3.0),)
    flops = 5

    def scalar(self, x: Array) -> Array:
        return 1 / np.sqrt(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (mul(mul(ct, -0.5), mul(out, mul(out, out))),)


@dataclass(frozen=True)
class Sin(Pointwise):
    """Sine."""

    expr = "sin(x)"
    flops = 10

    def scalar(self, x: Array) -> Array:
        return np.sin(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (mul(ct, cos(ins[0])),)


@dataclass(frozen=True)
class Cos(Pointwise):
    """Cosine."""

    expr = "cos(x)"
    flops = 10

    def scalar(self, x: Array) -> Array:
        return np.cos(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (neg(mul(ct, sin(ins[0]))),)


@dataclass(frozen=True)
class Tanh(Pointwise):
    """Hyperbolic tangent."""

    expr = "tanh(x)"
    flops = 10

    def scalar(self, x: Array) -> Array:
        return np.tanh(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (mul(ct, sub(1.0, mul(out, out))),)


@dataclass(frozen=True)
class Sigmoid(Pointwise):
    """1 / (1 + exp(-x))."""

    expr = "(F(1.0f) / (F(1.0f) + exp(-x)))"
    flops = 11

    def scalar(self, x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (mul(ct, mul(out, sub(1.0, out))),)


@dataclass(frozen=True)
class Erf(Pointwise):
    """The error function."""

    expr = "erf(x)"
    flops = 12

    def scalar(self, x: Array) -> Array:
        flat = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size)
        return flat.reshape(x.shape).astype(x.dtype)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        x = ins[0]
        return (mul(ct, mul(exp(neg(mul(x, x))), 2 / math.sqrt(math.pi))),)


@dataclass(frozen=True)
class Relu(Pointwise):
    """max(x, 0), keeping NaN; the gradient at 0 is 0, as in PyTorch."""

    expr = "WHERE(x < F(0.0f), F(0.0f), x)"
    ranges = ((0.1, 2.0), (-2.0, -0.1))

    def scalar(self, x: Array) -> Array:
        return np.where(x < 0, np.zeros((), x.dtype), x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (where(gt(out, 0.0), ct, 0.0),)


@dataclass(frozen=True)
class Pow(Binary):
    """x to the y, for x > 0."""

    expr = "pow(x, y)"
    integers = False
    ranges = ((0.3, 2.0),)
    flops = 20

    def scalar(self, x: Array, y: Array) -> Array:
        return np.power(x, y)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        x, y = ins
        return mul(ct, mul(y, power(x, sub(y, 1.0)))), mul(ct, mul(out, log(x)))


def exp(x: Value) -> Value:
    """e to the x."""
    return emit(Exp(), x)


def log(x: Value) -> Value:
    """Natural logarithm."""
    return emit(Log(), x)


def log1p(x: Value) -> Value:
    """log(1 + x)."""
    return emit(Log1p(), x)


def expm1(x: Value) -> Value:
    """exp(x) - 1."""
    return emit(Expm1(), x)


def sqrt(x: Value) -> Value:
    """Square root."""
    return emit(Sqrt(), x)


def rsqrt(x: Value) -> Value:
    """1 / sqrt(x)."""
    return emit(Rsqrt(), x)


def sin(x: Value) -> Value:
    """Sine."""
    return emit(Sin(), x)


def cos(x: Value) -> Value:
    """Cosine."""
    return emit(Cos(), x)


def tanh(x: Value) -> Value:
    """Hyperbolic tangent."""
    return emit(Tanh(), x)


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    return emit(Sigmoid(), x)


def erf(x: Value) -> Value:
    """The error function."""
    return emit(Erf(), x)


def relu(x: Value) -> Value:
    """max(x, 0)."""
    return emit(Relu(), x)


def power(x: Operand, y: Operand) -> Value:
    """x to the y, for x > 0."""
    return emit(Pow(), *pair(x, y))
