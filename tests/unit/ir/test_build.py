"""Building graphs: names, scopes, and what is said when a builder is misused."""

from __future__ import annotations

import pytest

from pocketgrad.base.errors import GraphError, ShapeError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType
from pocketgrad.ops.arithmetic import add, neg


def test_values_get_names_no_other_has() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((2,)), "x")
        values = [neg(x), neg(x), add(x, x), neg(x)]
    assert [v.name for v in values] == ["neg", "neg_1", "add", "neg_2"]


def test_an_input_name_can_be_given_once() -> None:
    with Builder() as builder:
        builder.input(TensorType((2,)), "x")
        with pytest.raises(GraphError, match="the input name 'x' is taken"):
            builder.input(TensorType((2,)), "x")


def test_a_mistake_is_reported_with_op_and_layer() -> None:
    with Builder() as builder:
        a = builder.input(TensorType((2,)), "a")
        b = builder.input(TensorType((3,)), "b")
        with (
            builder.scope("encoder"),
            builder.scope("fc1"),
            pytest.raises(ShapeError, match=r"^add in encoder.fc1: shapes \(2,\) and \(3,\)"),
        ):
            add(a, b)


def test_scopes_end_with_their_block_even_after_an_error() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((2,)), "x")
        with pytest.raises(ZeroDivisionError), builder.scope("bad"):
            raise ZeroDivisionError
        neg(x)
    assert builder.nodes[-1].scope == ""


def test_the_innermost_builder_receives() -> None:
    with Builder() as outer:
        x = outer.input(TensorType((2,)), "x")
        with Builder() as inner:
            y = inner.input(TensorType((2,)), "y")
            neg(y)
        neg(x)
    assert len(outer.nodes) == len(inner.nodes) == 1


def test_without_a_builder_the_advice_is_to_use_one() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((2,)), "x")
    with pytest.raises(GraphError, match="need a Builder: use them inside a module's forward"):
        neg(x)


def test_producers_and_consumers_are_found() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((2,)), "x")
        y = neg(x)
        z = add(y, y)
        graph = builder.graph([z])
    assert graph.producers[z].inputs == (y, y)
    assert graph.consumers[y] == [graph.producers[z]]
    assert x not in graph.producers
    assert z not in graph.consumers
