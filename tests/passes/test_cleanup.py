"""Clean-up shares what is equal, and only that."""

from __future__ import annotations

from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.source import constant
from pocketgrad.passes.cleanup import share_equal


def test_zero_and_minus_zero_are_two_constants() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((3,)), "x")
        graph = builder.graph([add(x, constant(0.0)), add(x, constant(-0.0))])
    assert len(share_equal(graph).nodes) == len(graph.nodes)


def test_equal_constants_are_one() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((3,)), "x")
        graph = builder.graph([add(add(x, constant(2.0)), constant(2.0))])
    assert len(share_equal(graph).nodes) == len(graph.nodes) - 1
