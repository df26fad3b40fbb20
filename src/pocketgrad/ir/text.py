"""Graphs as text, and back.

    graph(%x: float32[2,3], %w: float32[4,3]) {
      %h: float32[2,4] = mat_mul(transpose_a=False, transpose_b=True) %x, %w  @fc1 forward
    } return %h update %w <- %w_new

Attributes are Python literals or element types. The parser is given the vocabulary: this layer
knows no op by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from pocketgrad.base import dtypes
from pocketgrad.base.errors import GraphError, UnknownNameError
from pocketgrad.ir.core import Graph, Node, Op, TensorType, Value

_NODE = re.compile(
    r"(?P<outs>.*?) = (?P<op>\w+)\((?P<attrs>.*)\)(?P<ins>[^@()]*?)  @(?P<scope>\S*) (?P<phase>\w+)"
)
_TYPED = re.compile(r"%([^\s:,]+): (\w+)\[([\d,]*)\]")


def graph_text(graph: Graph) -> str:
    """Print a graph; ``parse`` reads it back equal."""
    lines = [f"graph({', '.join(map(repr, graph.inputs))}) {{"]
    lines += [f"  {node_text(node)}" for node in graph.nodes]
    end = "} return " + ", ".join(f"%{v.name}" for v in graph.outputs)
    if graph.updates:
        end += " update " + ", ".join(f"%{o.name} <- %{n.name}" for o, n in graph.updates.items())
    return "\n".join([*lines, end])


def node_text(node: Node) -> str:
    """One node as one line."""
    outs = ", ".join(map(repr, node.outputs))
    attrs = ", ".join(f"{k}={_literal(v)}" for k, v in node.op.attributes().items())
    ins = ", ".join(f"%{v.name}" for v in node.inputs)
    return f"{outs} = {node.op.label()}({attrs}) {ins}  @{node.scope} {node.phase}"


def _literal(value: Any) -> str:
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "1e999" if value > 0 else "-1e999"
    return repr(value)


def parse(text: str, vocabulary: Mapping[str, type[Op]]) -> Graph:
    """Read what ``graph_text`` printed; raises GraphError with the line that cannot be read."""
    first, *body, last = [line.strip() for line in text.strip().splitlines()]
    values: dict[str, Value] = {}

    def define(typed: str) -> tuple[Value, ...]:
        made = []
        for name, dtype, dims in _TYPED.findall(typed):
            shape = tuple(int(d) for d in dims.split(",") if d)
            values[name] = Value(TensorType(shape, dtypes.ALL[dtype]), name)
            made.append(values[name])
        return tuple(made)

    def use(names: str) -> tuple[Value, ...]:
        found = re.findall(r"%([^\s,]+)", names)
        for name in found:
            if name not in values:
                raise GraphError(f"cannot read graph text: %{name} is used before it is defined")
        return tuple(values[name] for name in found)

    inputs = define(first)
    nodes = []
    for line in body:
        match = _NODE.fullmatch(line)
        if match is None:
            raise GraphError(f"cannot read graph text at: {line}")
        if match["op"] not in vocabulary:
            raise UnknownNameError("operation", match["op"], vocabulary)
        op = vocabulary[match["op"]](**_attributes(match["attrs"]))
        ins = use(match["ins"])
        nodes.append(Node(op, ins, define(match["outs"]), match["scope"], match["phase"]))
    returned, _, updated = last.removeprefix("} return ").partition(" update ")
    pairs = use(updated.replace("<-", ","))
    updates = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return Graph(inputs, tuple(nodes), use(returned), updates)


def _attributes(text: str) -> dict[str, Any]:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    read: dict[str, Any] = {}
    for keyword in call.keywords:
        assert keyword.arg is not None
        node = keyword.value
        is_dtype = isinstance(node, ast.Name) and node.id in dtypes.ALL
        read[keyword.arg] = dtypes.ALL[node.id] if is_dtype else ast.literal_eval(node)  # type: ignore[attr-defined]  # is_dtype implies ast.Name
    return read
