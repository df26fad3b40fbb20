"""Dead code and common subexpressions: what nobody reads goes, what is computed twice is shared."""

from __future__ import annotations

from pocketgrad.ir.core import Graph, Node, Value


def drop_dead(graph: Graph) -> Graph:
    """Keep only the nodes that a result needs."""
    needed = set(graph.results)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    return Graph(graph.inputs, tuple(reversed(kept)), graph.outputs, graph.updates)


def share_equal(graph: Graph) -> Graph:
    """Replace a node that repeats an earlier one (same op, same inputs) by it.

    Nodes of outputs stay: outputs are found by their names. Ops are compared by their text, because
    0.0 equals -0.0.
    """
    seen: dict[tuple[str, tuple[Value, ...]], tuple[Value, ...]] = {}
    instead: dict[Value, Value] = {}
    kept: list[Node] = []
    named = set(graph.outputs)
    for node in graph.nodes:
        inputs = tuple(instead.get(v, v) for v in node.inputs)
        known = seen.setdefault((repr(node.op), inputs), node.outputs)
        if known is node.outputs or not named.isdisjoint(node.outputs):
            kept.append(Node(node.op, inputs, node.outputs, node.scope, node.phase))
        else:
            instead.update(zip(node.outputs, known, strict=True))
    outputs = tuple(instead.get(v, v) for v in graph.outputs)
    updates = {old: instead.get(new, new) for old, new in graph.updates.items()}
    return Graph(graph.inputs, tuple(kept), outputs, updates)
