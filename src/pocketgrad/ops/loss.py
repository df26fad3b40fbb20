"""Losses. A weight per sample makes a padded batch exact: padding has weight 0.

``mean`` divides by the weights of the samples that count; if none does the loss is 0.
"""

from __future__ import annotations

from math import prod

from pocketgrad.base.dtypes import int32, int64, uint8
from pocketgrad.base.errors import DtypeError, SettingError, ShapeError
from pocketgrad.ir.core import Value
from pocketgrad.ops.activation import softplus
from pocketgrad.ops.arithmetic import abs_, add, cast, detach, div, minimum, mul, neg, sub
from pocketgrad.ops.compare import eq, ge, logical_and, logical_or, lt, ne, where
from pocketgrad.ops.extremes import max_, mean, min_
from pocketgrad.ops.move import reshape
from pocketgrad.ops.reduce import sum_
from pocketgrad.ops.source import constant, iota
from pocketgrad.ops.transcendental import exp, log

REDUCTIONS = ("mean", "sum", "none")
IGNORED = -100  # the label of what does not count


def cross_entropy(
    logits: Value,
    labels: Value,
    weight: Value | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = IGNORED,
    reduction: str = "mean",
) -> Value:
    """-log softmax(logits)[label]; logits [N,C,…], integer labels [N,…], weight [N].

    A label out of range adds nothing of its own class: find it with ``bad_label``.
    """
    if len(logits.shape) < 2 or labels.shape != (logits.shape[0], *logits.shape[2:]):
        raise ShapeError(
            f"takes logits [N, classes, …] and labels [N, …], got {logits.type} and {labels.type}"
        )
    if not 0.0 <= label_smoothing < 1.0:
        raise SettingError(f"label_smoothing is at least 0 and below 1, got {label_smoothing}")
    index = as_labels(labels)
    classes = logits.shape[1]
    shifted = sub(logits, detach(max_(logits, 1, keepdims=True)))
    column = reshape(index, (index.shape[0], 1, *index.shape[1:]))
    counter = iota((classes, *(1,) * (len(logits.shape) - 2)), 0)
    picked = sum_(where(eq(column, counter), shifted, 0.0), 1)
    if label_smoothing:
        even = mul(mean(shifted, 1), label_smoothing)
        picked = add(mul(picked, 1.0 - label_smoothing), even)
    entropy = sub(log(sum_(exp(shifted), 1)), picked)
    counted = ne(index, ignore_index)
    share = (
        cast(counted, logits.dtype)
        if weight is None
        else where(counted, spread(weight, entropy), 0.0)
    )
    return reduced(where(counted, entropy, 0.0), share, reduction)


def bad_label(labels: Value, classes: int, ignore_index: int = IGNORED) -> Value:
    """int32: the smallest batch position with a label out of range, or the batch size if none."""
    index = as_labels(labels)
    n = index.shape[0]
    if index.type.size == 0:
        return constant(n, int32)
    outside = logical_or(lt(index, 0), ge(index, classes))
    bad = logical_and(outside, ne(index, ignore_index))
    position = iota((n, *(1,) * (len(index.shape) - 1)), 0)
    return min_(where(bad, position, constant(n, int32)))


def bce_with_logits(
    logits: Value,
    targets: Value,
    weight: Value | None = None,
    pos_weight: Value | None = None,
    reduction: str = "mean",
) -> Value:
    """Binary cross-entropy of sigmoid(logits); ``pos_weight`` multiplies that of targets of 1."""
    targets = alike(logits, targets)
    unlikely = softplus(neg(logits))  # -log sigmoid
    if pos_weight is not None:
        unlikely = mul(unlikely, add(mul(sub(pos_weight, 1.0), targets), 1.0))
    values = add(mul(sub(1.0, targets), logits), unlikely)
    return reduced(values, weight, reduction)


def mse(x: Value, y: Value, weight: Value | None = None, reduction: str = "mean") -> Value:
    """Squared difference."""
    apart = sub(x, alike(x, y))
    return reduced(mul(apart, apart), weight, reduction)


def l1(x: Value, y: Value, weight: Value | None = None, reduction: str = "mean") -> Value:
    """Absolute difference."""
    return reduced(abs_(sub(x, alike(x, y))), weight, reduction)


def huber(
    x: Value, y: Value, weight: Value | None = None, delta: float = 1.0, reduction: str = "mean"
) -> Value:
    """Half the squared difference up to ``delta``, linear with the same slope from there on."""
    if delta <= 0:
        raise SettingError(f"huber's delta is above 0, got {delta}")
    apart = abs_(sub(x, alike(x, y)))
    near = minimum(apart, delta)
    values = add(mul(mul(near, near), 0.5), mul(sub(apart, near), delta))
    return reduced(values, weight, reduction)


def smooth_l1(
    x: Value, y: Value, weight: Value | None = None, beta: float = 1.0, reduction: str = "mean"
) -> Value:
    """huber with slope 1: divided by its ``beta``; l1 where that is 0."""
    if beta == 0:
        return l1(x, y, weight, reduction)
    return mul(huber(x, y, weight, beta, reduction), 1 / beta)


def reduced(values: Value, weight: Value | None, reduction: str) -> Value:
    """Weighted mean, weighted sum, or each value times its weight ([N], or the values' shape)."""
    if reduction not in REDUCTIONS:
        raise SettingError(f"reduction '{reduction}' is none of {', '.join(REDUCTIONS)}")
    if weight is None:
        if reduction == "none":
            return values
        return sum_(values) if reduction == "sum" else mean(values)
    share = spread(weight, values)
    weighted = mul(values, share)
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return sum_(weighted)
    total = sum_(share)
    if share.shape != values.shape:
        total = mul(total, prod(values.shape[1:]))
    return div(sum_(weighted), where(eq(total, 0.0), 1.0, total))


def spread(weight: Value, values: Value) -> Value:
    """A weight per sample, shaped to multiply values [N,…]."""
    weight = cast(weight, values.dtype)
    if weight.shape == values.shape:
        return weight
    if not values.shape or weight.shape != values.shape[:1]:
        raise ShapeError(f"a weight for {values.type} is one number per sample, got {weight.type}")
    return reshape(weight, (weight.shape[0], *(1,) * (len(values.shape) - 1)))


def as_labels(labels: Value) -> Value:
    """Labels as int32."""
    if labels.dtype not in (int32, int64, uint8) or not labels.shape:
        raise DtypeError(f"labels are integers [N, …], got {labels.type}; cast() them to int32")
    return cast(labels, int32)


def alike(x: Value, y: Value) -> Value:
    """y in x's element type, if the shapes agree: broadcasting here is nearly always a mistake."""
    if x.shape != y.shape:
        raise ShapeError(
            f"prediction {x.type} and target {y.type} differ in shape; reshape() one of them"
        )
    return cast(y, x.dtype)
