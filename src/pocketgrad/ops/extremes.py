"""Largest and smallest along axes, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array, int32
from pocketgrad.base.errors import ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Value
from pocketgrad.ops.arithmetic import cast, div, mul
from pocketgrad.ops.compare import eq, where
from pocketgrad.ops.move import normal_axis, reshape
from pocketgrad.ops.reduce import Reduction, normal_axes, sum_
from pocketgrad.ops.source import iota


@dataclass(frozen=True)
class Extreme(Reduction):
    """Base of Max and Min; equal elements share the gradient evenly, as PyTorch's amax and amin."""

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        (x,), ct = inputs, cts[0]
        if ct is None or not x.dtype.is_float:
            return (None,)
        column = tuple(1 if i in self.axes else n for i, n in enumerate(x.shape))
        hit = cast(eq(x, reshape(outputs[0], column)), x.dtype)
        share = div(reshape(ct, column), sum_(hit, self.axes, keepdims=True))
        return (mul(hit, share),)

    def check(self, x: Array) -> None:
        """There is no largest of nothing."""
        if any(x.shape[a] == 0 for a in self.axes):
            raise ShapeError(f"the {self.label()} of an empty axis of {x.shape} is not defined")


@dataclass(frozen=True)
class Max(Extreme):
    """The largest along axes, NaN if any is."""

    combine = "WHERE((a > b) | (a != a), a, b)"
    start = float("-inf")

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        self.check(arrays[0])
        return (np.asarray(np.max(arrays[0], axis=self.axes, keepdims=self.keepdims)),)


@dataclass(frozen=True)
class Min(Extreme):
    """The smallest along axes, NaN if any is."""

    combine = "WHERE((a < b) | (a != a), a, b)"
    start = float("inf")

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        self.check(arrays[0])
        return (np.asarray(np.min(arrays[0], axis=self.axes, keepdims=self.keepdims)),)


def max_(x: Value, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    """The largest along axes (all by default)."""
    chosen = normal_axes(axes, len(x.shape))
    return emit(Max(chosen, keepdims), x) if chosen else x


def min_(x: Value, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    """The smallest along axes (all by default)."""
    chosen = normal_axes(axes, len(x.shape))
    return emit(Min(chosen, keepdims), x) if chosen else x


def argmax(x: Value, axis: int = -1) -> Value:
    """Position of the (first) largest along an axis, int32."""
    axis = normal_axis(axis, len(x.shape))
    hit = eq(x, max_(x, axis, keepdims=True))
    return min_(where(hit, iota(x.shape, axis, int32), x.shape[axis] - 1), axis)


def argmin(x: Value, axis: int = -1) -> Value:
    """Position of the (first) smallest along an axis, int32."""
    axis = normal_axis(axis, len(x.shape))
    hit = eq(x, min_(x, axis, keepdims=True))
    return min_(where(hit, iota(x.shape, axis, int32), x.shape[axis] - 1), axis)


def mean(x: Value, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    """Average along axes (all by default)."""
    chosen = normal_axes(axes, len(x.shape))
    n = int(np.prod([x.shape[a] for a in chosen]))
    if n == 0:
        raise ShapeError(f"the mean over axes {chosen} of {x.type} is over no elements")
    return mul(sum_(x, chosen, keepdims), 1.0 / n)
