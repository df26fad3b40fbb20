"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Callable

from pocketgrad.base.dtypes import bool_
from pocketgrad.base.errors import ShapeError
from pocketgrad.ir.core import Value
from pocketgrad.ops.activation import softmax
from pocketgrad.ops.arithmetic import add, detach, div, mul, sub
from pocketgrad.ops.compare import eq, le, logical_and, where
from pocketgrad.ops.extremes import max_
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.reduce import sum_
from pocketgrad.ops.source import iota
from pocketgrad.ops.transcendental import exp


def scaled_dot_product_attention(
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    causal: bool = False,
    scale: float | None = None,
    drop: Callable[[Value], Value] | None = None,
) -> Value:
    """softmax(scale * q kᵀ + mask) v, with q [...,L,E], k [...,S,E], v [...,S,D].

    A bool mask [...,L,S] is true where q may look; a float one is added. ``scale`` is 1/sqrt(E) by
    default. Rows that may look nowhere give 0. ``drop`` is applied to the shares.
    """
    if min(len(t.shape) for t in (q, k, v)) < 2 or q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"attention takes q [...,L,E] and k [...,S,E], got {q.type} and {k.type}")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"keys {k.type} and values {v.type} differ in number")
    factor = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else scale
    scores = matmul(mul(q, factor), k, transpose_b=True)
    allowed = mask if mask is not None and mask.dtype is bool_ else None
    if mask is not None and allowed is None:
        scores = add(scores, mask)
    if causal:
        below = earlier(q.shape[-2], k.shape[-2])
        allowed = below if allowed is None else logical_and(allowed, below)
    if allowed is not None:
        scores = where(allowed, scores, -math.inf)
    shares = softmax(scores) if mask is None and not causal else masked_softmax(scores)
    return matmul(shares if drop is None else drop(shares), v)


def earlier(rows: int, columns: int) -> Value:
    """bool [rows, columns]: true where the column is not after the row."""
    return le(iota((1, columns), 1), iota((rows, 1), 0))


def masked_softmax(scores: Value) -> Value:
    """softmax along the last axis that gives 0 for a row of -inf alone."""
    largest = detach(max_(scores, -1, keepdims=True))
    grown = exp(sub(scores, where(eq(largest, -math.inf), 0.0, largest)))
    total = sum_(grown, -1, keepdims=True)
    return div(grown, where(eq(total, 0.0), 1.0, total))
