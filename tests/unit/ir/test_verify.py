"""Each rule of a legal graph, broken once: the error names the rule, the pass and the place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pocketgrad.base.errors import GraphError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, Node, TensorType, Value
from pocketgrad.ir.verify import verify
from pocketgrad.ops.arithmetic import Add, Neg, add, mul, neg
from pocketgrad.ops.linalg import matmul


def sound() -> Graph:
    with Builder() as builder:
        x = builder.input(TensorType((2, 3)), "x")
        w = builder.input(TensorType((3, 3)), "w")
        h = matmul(x, w)
        with builder.scope("head"):
            y = neg(add(h, x))
        return builder.graph([y], {w: mul(w, 0.5)})


def reordered(graph: Graph) -> Graph:
    return replace(graph, nodes=graph.nodes[::-1])


def defined_twice(graph: Graph) -> Graph:
    return replace(graph, nodes=(*graph.nodes, graph.nodes[-1]))


def named_alike(graph: Graph) -> Graph:
    last = graph.nodes[-1]
    twin = Value(last.outputs[0].type, graph.nodes[0].outputs[0].name)
    return replace(graph, nodes=(*graph.nodes, replace(last, outputs=(twin,))))


def wrong_type(graph: Graph) -> Graph:
    first = graph.nodes[0]
    lying = Value(TensorType((7, 7)), "lying")
    return Graph(graph.inputs, (replace(first, outputs=(lying,)),), (lying,), {})


def wrong_inputs(graph: Graph) -> Graph:
    x, w = graph.inputs
    node = Node(Add(), (x, w), (Value(x.type, "sum"),), "head")
    return Graph(graph.inputs, (node,), node.outputs, {})


def lost_output(graph: Graph) -> Graph:
    return replace(graph, nodes=graph.nodes[:1], updates={})


def updated_inside(graph: Graph) -> Graph:
    inner = graph.nodes[0].outputs[0]
    return replace(graph, updates={inner: inner})


def updated_by_another_type(graph: Graph) -> Graph:
    x, w = graph.inputs
    return replace(graph, updates={w: x})


def stranger(graph: Graph) -> Graph:
    outside = Value(TensorType((2, 3)), "outside")
    node = Node(Neg(), (outside,), (Value(outside.type, "negated"),))
    return replace(graph, nodes=(*graph.nodes, node))


BROKEN: list[tuple[Callable[[Graph], Graph], str]] = [
    (reordered, r"%constant is read before it is computed\n> %mul.*\n  %constant"),
    (defined_twice, "is defined twice"),
    (named_alike, "two values are named %mat_mul"),
    (wrong_type, r"mat_mul gives float32\[2,3\], the node says float32\[7,7\]"),
    (wrong_inputs, "add does not accept its inputs: .* broadcast"),
    (lost_output, "output %neg.* is computed nowhere"),
    (updated_inside, "is updated but is not an input"),
    (updated_by_another_type, "cannot be replaced by .* types differ"),
    (stranger, "%outside is read before it is computed"),
]


def test_a_sound_graph_passes() -> None:
    verify(sound())


@pytest.mark.parametrize(("fault", "words"), BROKEN, ids=lambda v: getattr(v, "__name__", ""))
def test_a_broken_rule_is_named_with_the_pass_that_broke_it(
    fault: Callable[[Graph], Graph], words: str
) -> None:
    with pytest.raises(GraphError, match=words) as caught:
        verify(fault(sound()), after="a pass")
    assert str(caught.value).startswith("after a pass: ")


def test_the_neighbours_of_a_bad_node_are_shown() -> None:
    with pytest.raises(GraphError) as caught:
        verify(reordered(sound()))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("after building: ")
    assert [line[:2] for line in lines[1:]].count("> ") == 1
    assert len(lines) == 3
