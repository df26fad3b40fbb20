"""Graphs as text and back, and what is said about text that cannot be read."""

from __future__ import annotations

import pytest

from pocketgrad.base.dtypes import float16, int32
from pocketgrad.base.errors import GraphError, UnknownNameError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType
from pocketgrad.ir.text import graph_text, parse
from pocketgrad.ops import VOCABULARY
from pocketgrad.ops.arithmetic import add, cast, mul
from pocketgrad.ops.extremes import max_
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.pool import MaxPool2d
from pocketgrad.ops.source import constant

TEXT = """\
graph(%x: float32[2,3], %w: float32[4,3]) {
  %mat_mul: float32[2,4] = mat_mul(transpose_a=False, transpose_b=True) %x, %w  @fc1 forward
  %constant: float32[] = constant(value=0.5, dtype=float32, shape=())   @ update
  %mul: float32[4,3] = mul() %w, %constant  @ update
} return %mat_mul update %w <- %mul"""


def example() -> Graph:
    with Builder() as builder:
        x = builder.input(TensorType((2, 3)), "x")
        w = builder.input(TensorType((4, 3)), "w")
        with builder.scope("fc1"):
            y = matmul(x, w, transpose_b=True)
        with builder.located("", "update"):
            return builder.graph([y], {w: mul(w, 0.5)})


def test_a_graph_prints_as_agreed() -> None:
    assert graph_text(example()) == TEXT


def test_the_text_is_read_back_with_scopes_phases_and_updates() -> None:
    again = parse(TEXT, VOCABULARY)
    assert graph_text(again) == TEXT
    assert [(n.scope, n.phase) for n in again.nodes] == [
        ("fc1", "forward"), ("", "update"), ("", "update"),
    ]  # fmt: skip
    assert {old.name: new.name for old, new in again.updates.items()} == {"w": "mul"}


def test_attributes_of_every_kind_survive() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((1, 1, 4, 4)), "x")
        y, index = builder.add(MaxPool2d((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), ceil_mode=True), x)
        z = cast(add(y, constant(float("-inf"))), float16)
        graph = builder.graph([z, cast(index, int32), max_(x)])
    again = parse(graph_text(graph), VOCABULARY)
    assert [n.op for n in again.nodes] == [n.op for n in graph.nodes]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mat_mul(", "mat_mull(", "mat_mull.*did you mean.*mat_mul"),
        ("%x, %w  @", "%x, %v  @", "%v is used before it is defined"),
        ("  @fc1 forward", "", "cannot read graph text at: %mat_mul"),
    ],
)
def test_text_that_cannot_be_read_is_refused_with_the_place(old, new, words) -> None:
    assert old in TEXT
    with pytest.raises((GraphError, UnknownNameError), match=words):
        parse(TEXT.replace(old, new), VOCABULARY)
