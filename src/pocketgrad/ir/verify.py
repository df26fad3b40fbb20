"""The rules of a legal graph, as code. Tests run it after every pass."""

from __future__ import annotations

from pocketgrad.base.errors import GraphError, PocketgradError
from pocketgrad.ir.core import Graph, Node, Value
from pocketgrad.ir.text import node_text


def verify(graph: Graph, after: str = "building") -> None:
    """Raise GraphError at the first broken rule, naming the pass and showing the neighbourhood."""
    known: dict[Value, None] = {}
    names: set[str] = set()

    def define(value: Value) -> None:
        if value in known:
            raise GraphError(f"after {after}: {value} is defined twice")
        if value.name in names:
            raise GraphError(f"after {after}: two values are named %{value.name}")
        known[value] = None
        names.add(value.name)

    for value in graph.inputs:
        define(value)
    for position, node in enumerate(graph.nodes):
        _check_node(graph, position, node, known, after)
        for value in node.outputs:
            define(value)
    _check_results(graph, known, after)


def _check_results(graph: Graph, known: dict[Value, None], after: str) -> None:
    for value in graph.results:
        if value not in known:
            raise GraphError(f"after {after}: output {value} is computed nowhere")
    for value in graph.outputs:
        if value in graph.updates:
            raise GraphError(
                f"after {after}: output {value} is a donated input, which a run replaces; "
                "return a copy of it"
            )
    for old, new in graph.updates.items():
        if old not in graph.inputs:
            raise GraphError(f"after {after}: {old} is updated but is not an input")
        if old.type != new.type:
            raise GraphError(f"after {after}: {old} cannot be replaced by {new}: types differ")


def _check_node(
    graph: Graph, position: int, node: Node, known: dict[Value, None], after: str
) -> None:
    def fail(reason: str) -> GraphError:
        around = graph.nodes[max(0, position - 2) : position + 2]
        shown = "\n".join(("> " if n is node else "  ") + node_text(n) for n in around)
        return GraphError(f"after {after}: {reason}\n{shown}")

    for value in node.inputs:
        if value not in known:
            raise fail(f"%{value.name} is read before it is computed")
    try:
        inferred = node.op.infer(*(v.type for v in node.inputs))
    except PocketgradError as error:
        raise fail(f"{node.op.label()} does not accept its inputs: {error}") from error
    found = tuple(v.type for v in node.outputs)
    if inferred != found:
        raise fail(f"{node.op.label()} gives {_types(inferred)}, the node says {_types(found)}")


def _types(types: tuple[object, ...]) -> str:
    return ", ".join(map(str, types))
