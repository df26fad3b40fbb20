"""The iteration space of fused nodes: which axes of which values run together.

Nodes computed by one loop nest share domain dimensions. Dimensions that reductions sum over are
the row; the others are outer. A value that lives on the row is computed in a pass over it, one that
does not once per outer position. All reductions of a group run over the same row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from pocketgrad.ir.core import Node, Value
from pocketgrad.ops.move import Reshape
from pocketgrad.ops.pointwise import Pointwise
from pocketgrad.ops.reduce import Broadcast, Reduction
from pocketgrad.ops.source import Constant, Iota, Uniform

SOURCES = (Constant, Iota, Uniform)
BY_POSITION = (Pointwise, Reduction, Broadcast, *SOURCES)


@dataclass(frozen=True)
class Domain:
    """Sizes of the dimensions, the reduced ones, and for each value the dimension of each axis.

    ``axes[v][i]`` is None where axis i has size 1. ``levels[v]`` counts the passes over the row
    that must end before the value can be computed.
    """

    sizes: tuple[int, ...]
    row: frozenset[int]
    axes: dict[Value, tuple[int | None, ...]]
    levels: dict[Value, int]

    @property
    def outer(self) -> frozenset[int]:
        """Dimensions that no reduction runs over."""
        return frozenset(range(len(self.sizes))) - self.row

    def dims(self, value: Value) -> frozenset[int]:
        """The dimensions a value varies along."""
        return frozenset(d for d in self.axes[value] if d is not None)

    def size(self, dims: Iterable[int]) -> int:
        """Number of positions over some dimensions."""
        return prod(self.sizes[d] for d in dims)

    def storable(self, value: Value) -> bool:
        """Whether each element is computed by exactly one outer position."""
        dims = self.dims(value)
        return self.outer <= dims and (not dims & self.row or self.row <= dims)


def divisible(domain: Domain, nodes: Sequence[Node], stored: Iterable[Value]) -> bool:
    """Whether a row can be reduced in parts: one pass, after which nothing on the row is needed."""
    on_row = [v for v in stored if domain.dims(v) & domain.row]
    inputs = [n.inputs[0] for n in nodes if reduced(n, domain.axes)]
    return bool(domain.row) and not any(domain.levels[v] for v in (*on_row, *inputs))


def loopable(node: Node) -> bool:
    """Whether a node can be part of a loop nest."""
    op = node.op
    if isinstance(op, Reshape):
        return _squeezed(node.inputs[0].shape) == _squeezed(op.shape)
    return isinstance(op, BY_POSITION)


def analyse(nodes: Sequence[Node]) -> Domain | None:
    """The common domain of some nodes in order; None where they cannot share a loop nest."""
    start: dict[Value, int] = {}  # of the axes of a value in a union-find of all axes
    parent: list[int] = []
    for node in nodes:
        for value in (*node.inputs, *node.outputs):
            if value not in start:
                start[value] = len(parent)
                parent += range(len(parent), len(parent) + len(value.type.shape))
        for x, i, y, j in _aligned(node):
            parent[_find(parent, start[x] + i)] = _find(parent, start[y] + j)
    values = list(start)
    roots = {
        v: tuple(_find(parent, first + i) if n != 1 else None for i, n in enumerate(v.type.shape))
        for v, first in start.items()
    }
    if any(len(set(r) - {None}) != sum(x is not None for x in r) for r in roots.values()):
        return None  # a value meets itself transposed
    widest = max(values, key=lambda v: sum(r is not None for r in roots[v]))
    order = [r for r in roots[widest] if r is not None]
    number = {r: i for i, r in enumerate(order)}
    if any(r is not None and r not in number for rs in roots.values() for r in rs):
        return None  # no value spans the whole domain
    axes = {v: tuple(None if r is None else number[r] for r in rs) for v, rs in roots.items()}
    sizes = tuple(n for n in widest.shape if n != 1)
    return _levelled(nodes, sizes, axes)


def _find(parent: list[int], at: int) -> int:
    while parent[at] != at:
        parent[at] = at = parent[parent[at]]
    return at


def _levelled(
    nodes: Sequence[Node], sizes: tuple[int, ...], axes: dict[Value, tuple[int | None, ...]]
) -> Domain | None:
    sums = [node for node in nodes if reduced(node, axes)]
    rows = {reduced(node, axes) for node in sums}
    summing = set(sums)
    if len(rows) > 1:
        return None
    row = next(iter(rows), frozenset())
    levels: dict[Value, int] = {}
    for node in nodes:
        base = max((levels.get(v, 0) for v in node.inputs), default=0)
        levels |= dict.fromkeys(node.outputs, base + (node in summing))
    domain = Domain(sizes, row, axes, {v: levels.get(v, 0) for v in axes})
    if any(domain.outer - domain.dims(node.outputs[0]) for node in sums):
        return None  # the reduction would be repeated along an outer dimension
    return domain


def reduced(node: Node, axes: dict[Value, tuple[int | None, ...]]) -> frozenset[int]:
    """The dimensions a node sums over (none for other nodes, or where all have size 1)."""
    if not isinstance(node.op, Reduction):
        return frozenset()
    mine = axes[node.inputs[0]]
    return frozenset(d for a in node.op.axes if (d := mine[a]) is not None)


@lru_cache(maxsize=16_384)  # the nodes of a few graphs: fusion asks for each some ten times
def _aligned(node: Node) -> tuple[tuple[Value, int, Value, int], ...]:
    """Axes of a node's values that run together: axis i of x with axis j of y."""
    return tuple(_pairs(node))


def _pairs(node: Node) -> Iterable[tuple[Value, int, Value, int]]:
    out = node.outputs[0]
    if isinstance(node.op, Reduction):
        (x,) = node.inputs
        kept = [i for i in range(len(x.shape)) if node.op.keepdims or i not in node.op.axes]
        for j, i in enumerate(kept):
            if i not in node.op.axes:
                yield x, i, out, j
    elif isinstance(node.op, Reshape):
        (x,) = node.inputs
        ins = [i for i, n in enumerate(x.shape) if n != 1]
        outs = [i for i, n in enumerate(out.shape) if n != 1]
        for i, j in zip(ins, outs, strict=True):
            yield x, i, out, j
    else:
        for x in node.inputs:
            lead = len(out.shape) - len(x.shape)
            wide = out.shape[lead:]
            for i, n in enumerate(x.shape):
                if n != 1 and n == wide[i]:
                    yield x, i, out, lead + i


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)
