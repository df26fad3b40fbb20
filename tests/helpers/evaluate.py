"""The plainest meaning of a graph: every node's NumPy reference, one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.base.dtypes import Array
from pocketgrad.ir.core import Graph, Value


def evaluate(graph: Graph, feeds: Mapping[str, Array]) -> dict[Value, Array]:
    """All values of a graph, given its inputs by name."""
    known: dict[Value, Array] = {v: feeds[v.name] for v in graph.inputs}
    for node in graph.nodes:
        outs = node.op.ref(*(known[v] for v in node.inputs))
        known.update(zip(node.outputs, outs, strict=True))
    return known
