"""Random graphs of pointwise, reducing, moving and multiplying ops on small whole numbers.

All numbers stay whole and below 2^24, so float32 is exact in any order and every result must be
equal, not merely close.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from hypothesis import strategies as st

from pocketgrad.base.dtypes import Array, float32, int32
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, Op, TensorType, Value
from pocketgrad.ops import move
from pocketgrad.ops.arithmetic import abs_, add, cast, maximum, minimum, mul, neg, sub
from pocketgrad.ops.compare import le, where
from pocketgrad.ops.extremes import argmax, max_, min_
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.reduce import broadcast_to, sum_
from pocketgrad.ops.source import constant, iota
from pocketgrad.ops.transcendental import relu

BOUND = 9  # what values are cut to; the longest sum of products stays far below 2^24
MOST_ELEMENTS = 3000

Draw = Callable[..., int]
Shape = tuple[int, ...]


def shapes(most_axes: int = 4) -> st.SearchStrategy[Shape]:
    """Ones, odd sizes, and sizes beyond a vector register."""
    sizes = st.sampled_from([1, 1, 2, 3, 5, 8, 17])
    return st.lists(sizes, max_size=most_axes).map(tuple).filter(lambda s: prod(s) <= MOST_ELEMENTS)


@st.composite
def graphs(draw: st.DrawFn, most_nodes: int = 12, most_outputs: int = 3) -> Graph:
    """A graph with inputs ``x0`` …, of which some are donated, and a few outputs."""
    with Builder() as builder:
        values = [
            builder.input(TensorType(draw(shapes())), f"x{i}")
            for i in range(draw(st.integers(1, 3)))
        ]
        for _ in range(draw(st.integers(most_nodes // 2, most_nodes))):
            grown = draw(st.sampled_from(GROWTHS))(draw, values)
            if grown.type.size <= MOST_ELEMENTS:
                values.append(grown)
        made = [v for v in values if v not in builder.inputs]
        pool = made or values
        outputs = draw(
            st.lists(st.sampled_from(pool), min_size=1, max_size=most_outputs, unique=True)
        )
        updates = {}
        for old in builder.inputs:
            news = [v for v in values if v.type == old.type and v is not old]
            if news and old not in outputs and draw(st.booleans()):
                updates[old] = draw(st.sampled_from(news))
        return builder.graph(outputs, updates)


def feeds_for(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Small whole numbers for every input."""
    rng = np.random.default_rng(seed)
    return {v.name: rng.integers(-4, 5, v.shape).astype(v.dtype.numpy) for v in graph.inputs}


def _cut(x: Value) -> Value:
    """Keep numbers small: a piece of pointwise work for the fusion as well."""
    return maximum(minimum(x, float(BOUND)), -float(BOUND))


def _pick(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    return draw(st.sampled_from(list(values)))


def _axes(draw: st.DrawFn, x: Value) -> tuple[int, ...]:
    rank = len(x.shape)
    return tuple(draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True)))


def _unary(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    return draw(st.sampled_from([neg, abs_, relu]))(_pick(draw, values))


def _halfway(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    """Through whole numbers and back."""
    return cast(add(cast(_pick(draw, values), int32), 1), float32)


def _binary(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    a = _pick(draw, values)
    fitting = [v for v in values if _broadcasts(a.shape, v.shape)]
    b = _pick(draw, fitting)
    op = draw(st.sampled_from([add, sub, mul, maximum, minimum, _smaller]))
    return _cut(op(a, b))


def _smaller(a: Value, b: Value) -> Value:
    return where(le(a, b), a, neg(b))


def _broadcasts(a: Shape, b: Shape) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def _reduce(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    if not x.shape:
        return neg(x)
    op = draw(st.sampled_from([sum_, max_, min_]))
    return _cut(op(x, _axes(draw, x), draw(st.booleans())))


def _normalise(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    """A row minus its largest, and the sum of that: two passes over a row, as in softmax."""
    x = _pick(draw, values)
    if not x.shape:
        return neg(x)
    axes = _axes(draw, x)
    centred = sub(x, max_(x, axes, keepdims=True))
    return _cut(add(centred, sum_(centred, axes, keepdims=True)))


def _position(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    if not x.shape:
        return add(x, constant(2.0))
    axis = draw(st.integers(0, len(x.shape) - 1))
    if draw(st.booleans()):
        return _cut(add(x, iota(x.shape, axis, float32)))
    return _cut(cast(argmax(x, axis), float32))


def _reshape(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    factors = [p for n in x.shape for p in _primes(n)]
    order = draw(st.permutations(factors))
    shape: list[int] = []
    for p in order:
        if draw(st.booleans()) and shape:
            shape[-1] *= p
        else:
            shape.append(p)
    if draw(st.booleans()):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return move.reshape(x, shape)


def _primes(n: int) -> list[int]:
    """The prime factors of a size made of 2, 3, 5 and 17, or the size itself."""
    found = []
    for p in (2, 3, 5, 17):
        while n % p == 0:
            found.append(p)
            n //= p
    return found if n == 1 else [*found, n]


def _transpose(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    return move.transpose(x, draw(st.permutations(range(len(x.shape)))))


def _broadcast(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    shape = tuple(draw(st.sampled_from([1, 2, 5])) if n == 1 else n for n in x.shape)
    lead = draw(st.sampled_from([(), (2,), (3, 1)]))
    return broadcast_to(x, (*lead, *shape)) if prod((*lead, *shape)) <= MOST_ELEMENTS else x


def _slice(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    if not x.shape:
        return x
    axis = draw(st.integers(0, len(x.shape) - 1))
    start = draw(st.integers(0, x.shape[axis] - 1))
    stop = draw(st.integers(start + 1, x.shape[axis]))
    return move.slice_(x, axis, start, stop, draw(st.integers(1, 3)))


def _flip(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    return move.flip(x, *_axes(draw, x)) if x.shape else x


def _pad(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    widths = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in x.shape]
    return move.pad(x, widths, float(draw(st.integers(-1, 1))))


def _concat(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, [v for v in values if v.shape] or [move.reshape(values[0], (1,))])
    axis = draw(st.integers(0, len(x.shape) - 1))

    def fits(v: Value) -> bool:
        same = len(v.shape) == len(x.shape)
        return same and all(
            m == n for i, (m, n) in enumerate(zip(v.shape, x.shape, strict=True)) if i != axis
        )

    fitting = [v for v in values if fits(v)] or [x]
    parts = [x, *(_pick(draw, fitting) for _ in range(draw(st.integers(1, 2))))]
    return move.concat(parts, axis)


def _matmul(draw: st.DrawFn, values: Sequence[Value]) -> Value:
    x = _pick(draw, values)
    if len(x.shape) < 2:
        x = move.reshape(x, (1, -1))
    return _cut(matmul(x, x, transpose_b=True))


GROWTHS = (
    _unary, _halfway, _binary, _binary, _binary, _reduce, _reduce, _normalise, _position,
    _reshape, _transpose, _broadcast, _slice, _flip, _pad, _concat, _matmul,
)  # fmt: skip


@st.composite
def view_chains(draw: st.DrawFn, shape: Shape) -> list[Op]:
    """View ops, one after the other, on a value of a shape."""
    with Builder() as builder:
        value = builder.input(TensorType(shape), "x")
        for _ in range(draw(st.integers(1, 5))):
            value = draw(st.sampled_from(VIEWS))(draw, [value])
        return [node.op for node in builder.nodes]


VIEWS = (_reshape, _transpose, _broadcast, _slice, _flip)
