"""Sums of many alike terms become one term, and mean the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate
from tests.helpers.tolerance import assert_close

from pocketgrad.base.dtypes import float32
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType, Value
from pocketgrad.ir.verify import verify
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.move import pad, reshape, slice_
from pocketgrad.ops.recurrent import Weights, lstm
from pocketgrad.ops.reduce import sum_
from pocketgrad.passes.autodiff import gradients
from pocketgrad.passes.cleanup import drop_dead, share_equal
from pocketgrad.passes.gather_sums import LEAST, gather_sums

Term = Callable[[Value, int], Value]
STEPS = 5


def padded(step: Value, t: int, gap: int = 0) -> Value:
    before = t * (6 + gap)
    return pad(step, [(before, STEPS * (6 + gap) - before - 6), (0, 0)])


TERMS: dict[str, tuple[Term, str]] = {
    "products": (lambda v, _: matmul(v, v), "mat_mul"),
    "products of transposed": (lambda v, _: matmul(v, v, transpose_a=True), "mat_mul"),
    "products by transposed": (lambda v, _: matmul(v, v, transpose_b=True), "mat_mul"),
    "sums of rows": (lambda v, _: sum_(v, 0), "sum"),
    "padded parts": (padded, "concat"),
    "padded parts with gaps": (lambda v, t: padded(v, t, gap=2), "concat"),
}


def sum_of(term: Term, steps: int = STEPS) -> Graph:
    """The sum of a term of each step of an input [steps, 6, 6]."""
    with Builder() as builder:
        x = builder.input(TensorType((steps, 6, 6)), "x")
        parts = [term(reshape(slice_(x, 0, t, t + 1), (6, 6)), t) for t in range(steps)]
        total = parts[0]
        for part in parts[1:]:
            total = add(total, part)
        return builder.graph([total])


def same(before: Graph, after: Graph) -> None:
    verify(after)
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in before.inputs}
    wanted, found = evaluate(before, feeds), evaluate(after, feeds)
    for old, new in zip(before.outputs, after.outputs, strict=True):
        assert_close(found[new], wanted[old], float32, terms=64)


def labels(graph: Graph) -> list[str]:
    return [n.op.label() for n in graph.nodes]


@pytest.mark.parametrize("kind", TERMS)
def test_many_terms_become_one(kind: str) -> None:
    term, label = TERMS[kind]
    before = sum_of(term)
    after = drop_dead(gather_sums(before))
    same(before, after)
    assert labels(after).count(label) == 1
    assert "add" not in labels(after)


@pytest.mark.parametrize("kind", TERMS)
def test_few_terms_stay_as_they_are(kind: str) -> None:
    before = sum_of(TERMS[kind][0], LEAST - 1)
    assert gather_sums(before).nodes == before.nodes


def test_parts_that_overlap_stay_a_sum() -> None:
    before = sum_of(lambda v, t: pad(v, [(t, STEPS - t), (0, 0)]))
    assert gather_sums(before).nodes == before.nodes


def test_what_is_of_another_kind_is_added_to_the_joined_terms() -> None:
    before = sum_of(lambda v, t: matmul(v, v) if t != 2 else v, STEPS + 1)
    after = drop_dead(gather_sums(before))
    same(before, after)
    assert labels(after).count("mat_mul") == labels(after).count("add") == 1


def test_a_term_that_is_read_elsewhere_is_kept() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((STEPS, 6, 6)), "x")
        steps = [reshape(slice_(x, 0, t, t + 1), (6, 6)) for t in range(STEPS)]
        parts = [matmul(v, v) for v in steps]
        total = parts[0]
        for part in parts[1:]:
            total = add(total, part)
        before = builder.graph([total, parts[2]])
    after = drop_dead(gather_sums(before))
    same(before, after)


def test_a_recurrent_weight_has_one_product_for_its_gradient() -> None:
    steps, batch, size = 6, 2, 3
    with Builder() as builder:
        x = builder.input(TensorType((steps, batch, 4)), "x")
        state = builder.input(TensorType((batch, size)), "state")
        shapes = ((4 * size, 4), (4 * size, size), (4 * size,), (4 * size,))
        weights = [builder.input(TensorType(s), f"w{i}") for i, s in enumerate(shapes)]
        out, *_ = lstm(x, state, state, Weights(*weights))
        found = gradients(builder, sum_(out), weights)
        before = builder.graph([v for v in found if v is not None])
    after = drop_dead(share_equal(gather_sums(share_equal(drop_dead(before)))))
    same(before, after)
    products = [n for n in after.nodes if n.op.label() == "mat_mul"]
    assert len(products) == 1 + steps + (steps - 1) + 2  # inputs, forward, backward, gradients
