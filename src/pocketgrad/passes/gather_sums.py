"""Sums of many alike terms become one: what a weight or a slice that is used at every step leaves.

Over a sequence the gradient of a weight is a sum of products, that of a bias a sum of sums, and
that of the sliced input a sum of padded parts. Joined along the axis that is summed they are one
product, one sum and one join, whose parts are written into their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pocketgrad.ir.core import Graph, Node, Op, TensorType, Value
from pocketgrad.ops.arithmetic import Add
from pocketgrad.ops.linalg import MatMul
from pocketgrad.ops.move import Concat, Pad, Reshape
from pocketgrad.ops.reduce import Sum
from pocketgrad.ops.source import Constant

LEAST = 4  # terms: fewer cost less than the copies that a join may need


def gather_sums(graph: Graph) -> Graph:
    """Rewrite every sum of at least four products, sums or padded parts of a kind."""
    inner = {n for n in graph.nodes if _inner(graph, n)}
    names = {v.name for n in graph.nodes for v in n.outputs} | {v.name for v in graph.inputs}
    kept: list[Node] = []
    for node in graph.nodes:
        if _is_sum(node) and node not in inner:
            writer = _Writer(node, names)
            _rewrite(graph, _leaves(graph, node, inner), writer)
            kept += writer.finished()
        else:
            kept.append(node)
    return Graph(graph.inputs, tuple(kept), graph.outputs, graph.updates)


def _inner(graph: Graph, node: Node) -> bool:
    """Whether a sum is only a term of another sum of the same type."""
    (out, *_) = node.outputs
    readers = graph.consumers.get(out, [])
    if not _is_sum(node) or len(readers) != 1 or out in graph.results:
        return False
    return _is_sum(readers[0]) and readers[0].inputs.count(out) == 1


def _is_sum(node: Node) -> bool:
    """Whether it adds two values of one type."""
    return isinstance(node.op, Add) and node.inputs[0].type == node.inputs[1].type


def _leaves(graph: Graph, root: Node, inner: set[Node]) -> list[Value]:
    """The terms of a sum, from left to right."""
    found: list[Value] = []
    pending = list(reversed(root.inputs))
    while pending:
        value = pending.pop()
        maker = graph.producers.get(value)
        if maker is not None and maker in inner:
            pending += reversed(maker.inputs)
        else:
            found.append(value)
    return found


@dataclass
class _Writer:
    """Collects what replaces the node of a sum; the last value it makes is that of the sum."""

    root: Node
    names: set[str]
    nodes: list[Node] = field(default_factory=list)

    def emit(self, op: Op, *inputs: Value) -> Value:
        (out,) = (self._value(t, op) for t in op.infer(*(v.type for v in inputs)))
        self.nodes.append(Node(op, inputs, (out,), self.root.scope, self.root.phase))
        return out

    def _value(self, type: TensorType, op: Op) -> Value:
        number = len(self.names)
        while f"{op.label()}_{number}" in self.names:
            number += 1
        name = f"{op.label()}_{number}"
        self.names.add(name)
        return Value(type, name)

    def finished(self) -> list[Node]:
        """The nodes instead, or the old one where nothing was found."""
        if not self.nodes:
            return [self.root]
        *first, last = self.nodes
        return [*first, Node(last.op, last.inputs, self.root.outputs, last.scope, last.phase)]


def _rewrite(graph: Graph, leaves: Sequence[Value], writer: _Writer) -> None:
    kinds: dict[Kind, list[Node]] = {}
    rest: list[Value] = []
    for value in leaves:
        maker = graph.producers.get(value)
        key = _kind(maker) if maker is not None and len(graph.consumers[value]) == 1 else None
        if maker is None or key is None:
            rest.append(value)
        else:
            kinds.setdefault(key, []).append(maker)
    terms: list[Value] = []
    for (join, _), nodes in kinds.items():
        made = join(nodes, writer) if len(nodes) >= LEAST else None
        rest += [n.outputs[0] for n in nodes] if made is None else []
        terms += [] if made is None else [made]
    if terms:
        reduce(lambda a, b: writer.emit(Add(), a, b), (*terms, *rest))


Join = Callable[[Sequence[Node], _Writer], Value | None]
Kind = tuple[Join, object]  # how terms are joined, and what they must have in common for it


def _kind(node: Node) -> Kind | None:
    """None for a term that stays as it is."""
    op = node.op
    if isinstance(op, MatMul) and len(node.outputs[0].shape) == 2:
        return _product, op
    if isinstance(op, Sum) and op.axes == (0,) and len(node.inputs[0].shape) > 1:
        return _sum, (op, node.inputs[0].shape[1:])
    if isinstance(op, Pad) and op.value == 0.0 and not any(op.gaps):
        padded = _padded(op)
        return (_parts, padded[0]) if len(padded) == 1 else None
    return None


def _product(nodes: Sequence[Node], writer: _Writer) -> Value:
    """One product over all that is summed; later terms first, as gradients come in."""
    op = nodes[0].op
    assert isinstance(op, MatMul)
    a = _joined([n.inputs[0] for n in reversed(nodes)], 0 if op.transpose_a else 1, writer)
    b = _joined([n.inputs[1] for n in reversed(nodes)], 1 if op.transpose_b else 0, writer)
    return writer.emit(op, a, b)


def _sum(nodes: Sequence[Node], writer: _Writer) -> Value:
    return writer.emit(nodes[0].op, _joined([n.inputs[0] for n in reversed(nodes)], 0, writer))


def _joined(values: Sequence[Value], axis: int, writer: _Writer) -> Value:
    """Side by side along an axis. Along the first by way of a new one, as stacks are made: equal
    joins are then one."""
    if axis or len({v.shape for v in values}) > 1:
        return writer.emit(Concat(axis), *values)
    shape = values[0].shape
    stacked = writer.emit(Concat(0), *(writer.emit(Reshape((1, *shape)), v) for v in values))
    return writer.emit(Reshape((len(values) * shape[0], *shape[1:])), stacked)


def _parts(nodes: Sequence[Node], writer: _Writer) -> Value | None:
    """Padded parts that do not overlap, joined; zeros between them."""
    first = nodes[0].op
    assert isinstance(first, Pad)
    (axis,) = _padded(first)
    total = nodes[0].outputs[0].shape[axis]
    ordered = sorted(nodes, key=lambda n: _start(n, axis))
    ends = [0, *(_start(n, axis) + n.inputs[0].shape[axis] for n in ordered)]
    gaps = [_start(n, axis) - end for n, end in zip(ordered, ends, strict=False)]
    if min(gaps) < 0:
        return None
    joined: list[Value] = []
    for node, gap in zip(ordered, gaps, strict=True):
        joined += [*_zeros(node.inputs[0], axis, gap, writer), node.inputs[0]]
    joined += _zeros(joined[-1], axis, total - ends[-1], writer)
    return writer.emit(Concat(axis), *joined)


def _padded(op: Pad) -> list[int]:
    """The axes along which something is added."""
    return [i for i, ends in enumerate(zip(op.before, op.after, strict=True)) if any(ends)]


def _start(node: Node, axis: int) -> int:
    assert isinstance(node.op, Pad)
    return node.op.before[axis]


def _zeros(like: Value, axis: int, size: int, writer: _Writer) -> Iterable[Value]:
    if not size:
        return []
    shape = tuple(size if i == axis else n for i, n in enumerate(like.shape))
    return [writer.emit(Constant(0.0, like.dtype, shape))]
