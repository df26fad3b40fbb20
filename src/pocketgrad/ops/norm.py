"""Normalisation by batch, layer, group and neighbouring channels.

Written so that the gradient costs two sums over the data, like one derived by hand: the mean is
detached where its gradient is known to cancel (the sum of x - mean is 0), and given back per
channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from pocketgrad.base.errors import ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Value
from pocketgrad.ops.arithmetic import add, detach, mul, sub
from pocketgrad.ops.average import AvgPool2d
from pocketgrad.ops.extremes import mean
from pocketgrad.ops.move import reshape
from pocketgrad.ops.transcendental import power, rsqrt


class BatchNorm(NamedTuple):
    """The normalised values, and mean and biased variance of the batch, one per channel."""

    y: Value
    mean: Value
    variance: Value


def batch_norm_train(
    x: Value, gamma: Value | None = None, beta: Value | None = None, eps: float = 1e-5
) -> BatchNorm:
    """Normalise every channel (axis 1) by the batch's statistics, then scale and shift."""
    column = per_channel(x)
    axes = tuple(i for i in range(len(x.shape)) if i != 1)
    if x.type.size // max(1, x.shape[1]) < 2:
        raise ShapeError(
            f"batch norm in training needs more than one value per channel, got {x.type}; use a "
            "larger batch, or eval mode"
        )
    average = mean(x, axes)
    fixed = detach(average)
    centred = sub(x, reshape(fixed, column))
    variance = mean(mul(centred, centred), axes)
    scale = rsqrt(add(variance, eps))
    scale = scale if gamma is None else mul(scale, gamma)
    shift = mul(sub(fixed, average), scale)  # 0; carries the gradient of the mean
    shift = shift if beta is None else add(shift, beta)
    y = add(mul(centred, reshape(scale, column)), reshape(shift, column))
    return BatchNorm(y, average, variance)


def batch_norm_eval(
    x: Value,
    average: Value,
    variance: Value,
    gamma: Value | None = None,
    beta: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """Normalise every channel (axis 1) by given statistics, then scale and shift."""
    column = per_channel(x)
    scale = rsqrt(add(variance, eps))
    scale = scale if gamma is None else mul(scale, gamma)
    y = mul(sub(x, reshape(average, column)), reshape(scale, column))
    return y if beta is None else add(y, reshape(beta, column))


def running_statistics(
    old: tuple[Value, Value], batch: BatchNorm, momentum: float | Value
) -> tuple[Value, Value]:
    """New running mean and variance, the latter from the batch's unbiased variance."""
    n = batch.y.type.size // batch.y.shape[1]
    unbiased = mul(batch.variance, n / (n - 1))
    mixed = [
        add(was, mul(sub(detach(now), was), momentum))
        for was, now in zip(old, (batch.mean, unbiased), strict=True)
    ]
    return mixed[0], mixed[1]


def layer_norm(
    x: Value,
    shape: int | Sequence[int],
    gamma: Value | None = None,
    beta: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """Normalise over the last axes, which have this shape, then scale and shift by element."""
    last = (shape,) if isinstance(shape, int) else tuple(shape)
    first = len(x.shape) - len(last)
    if first < 0 or x.shape[first:] != last:
        raise ShapeError(f"layer norm over {last} does not fit the last axes of {x.type}")
    y = standardized(x, tuple(range(first, len(x.shape))), eps)
    y = y if gamma is None else mul(y, gamma)
    return y if beta is None else add(y, beta)


def group_norm(
    x: Value,
    groups: int,
    gamma: Value | None = None,
    beta: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """Normalise over groups of channels (axis 1) with all positions, then scale and shift."""
    column = per_channel(x)
    n, c = x.shape[:2]
    if groups < 1 or c % groups:
        raise ShapeError(f"{c} channels of {x.type} are not a multiple of {groups} groups")
    rows = reshape(x, (n, groups, c // groups * prod(x.shape[2:])))
    y = reshape(standardized(rows, (2,), eps), x.shape)
    y = y if gamma is None else mul(y, reshape(gamma, column))
    return y if beta is None else add(y, reshape(beta, column))


def standardized(x: Value, axes: tuple[int, ...], eps: float) -> Value:
    """x with mean 0 and variance 1 over axes."""
    average = mean(x, axes, keepdims=True)
    fixed = detach(average)
    centred = sub(x, fixed)
    scale = rsqrt(add(mean(mul(centred, centred), axes, keepdims=True), eps))
    return add(mul(centred, scale), mul(sub(fixed, average), scale))


def local_response_norm(
    x: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    """x / (k + alpha * mean of squares over ``size`` neighbouring channels) ** beta."""
    per_channel(x)
    if size < 1:
        raise ShapeError(f"local response norm needs at least 1 neighbouring channel, got {size}")
    n, c = x.shape[:2]
    plane = reshape(mul(x, x), (n, 1, c, prod(x.shape[2:])))
    padding = (size // 2, 0, (size - 1) // 2, 0)
    window = AvgPool2d((size, 1), (1, 1), padding, (1, 1), False, count_include_pad=True)
    around = reshape(emit(window, plane), x.shape)
    return mul(x, power(add(mul(around, alpha), k), -beta))


def per_channel(x: Value) -> tuple[int, ...]:
    """The shape in which one number per channel (axis 1) broadcasts with x."""
    if len(x.shape) < 2:
        raise ShapeError(f"takes [batch, channels, …], got {x.type}")
    return (x.shape[1], *(1,) * (len(x.shape) - 2))
