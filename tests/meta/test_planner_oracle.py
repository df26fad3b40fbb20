"""The harness is tested: plans that are slightly wrong must be caught."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.helpers.plan_oracle import audit, audit_placement

from pocketgrad.backends.api import Lowered
from pocketgrad.backends.null import NullBackend
from pocketgrad.engine.compile import plan_graph
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType, Value
from pocketgrad.ops.arithmetic import add, mul, neg
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.move import transpose
from pocketgrad.ops.reduce import sum_
from pocketgrad.plan.memory import Lifetime, Placement, place
from pocketgrad.plan.plan import Plan, Step
from pocketgrad.plan.views import View


def example() -> Graph:
    """Two temporaries alive together, and a donated input that is read before it is replaced."""
    with Builder() as builder:
        x, w = (builder.input(TensorType((16, 16)), n) for n in "xw")
        a, b = matmul(x, w), matmul(x, w, transpose_b=True)
        y = matmul(a, b)
        return builder.graph([sum_(y)], {w: add(w, mul(neg(y), 0.5))})


def planned() -> tuple[Plan, list[Lowered]]:
    return plan_graph(example(), NullBackend())


def test_a_sound_plan_passes() -> None:
    audit(*planned())


def test_a_planner_that_overlaps_by_one_byte_is_caught() -> None:
    lives = {
        Value(TensorType((16,)), name): Lifetime(64, first, last)
        for name, first, last in (("a", 0, 2), ("b", 1, 3), ("c", 3, 4))
    }
    a, b, _ = lives
    placed = place(lives)
    audit_placement(lives, (), placed, 1)
    moved = Placement({**placed.offsets, b: placed.offsets[a] + 63}, placed.nbytes + 64)
    with pytest.raises(AssertionError, match="alive together and overlap"):
        audit_placement(lives, (), moved, 1)
    tight = Placement(placed.offsets, placed.nbytes - 1)
    with pytest.raises(AssertionError, match="leaves the arena"):
        audit_placement(lives, (), tight, 1)


def test_a_plan_that_overlaps_by_one_byte_is_caught() -> None:
    plan, lowered = planned()
    factors = [v for v in plan.slots if v.name in ("mat_mul", "mat_mul_1")]
    below, above = sorted(factors, key=lambda v: plan.slots[v].offset)
    end = plan.slots[below].offset + plan.slots[below].nbytes
    moved = replace(plan.slots[above], offset=end - 1)
    with pytest.raises(AssertionError, match=r"before its time|same place"):
        audit(replace(plan, slots={**plan.slots, above: moved}), lowered)


def test_steps_in_the_wrong_order_are_caught() -> None:
    plan, lowered = planned()
    backwards = replace(plan, steps=plan.steps[::-1])
    with pytest.raises(AssertionError, match="before its time"):
        audit(backwards, lowered[::-1])


def test_a_value_stored_twice_is_caught() -> None:
    plan, lowered = planned()
    twice = replace(plan, steps=(*plan.steps, plan.steps[-1]))
    with pytest.raises(AssertionError, match="a second time"):
        audit(twice, [*lowered, lowered[-1]])


def test_a_view_that_leaves_its_value_is_caught() -> None:
    plan, lowered = planned()
    first, *rest = plan.steps
    reads = {v: replace(view, offset=view.offset + 1) for v, view in first.reads.items()}
    with pytest.raises(AssertionError, match="leaves"):
        audit(replace(plan, steps=(replace(first, reads=reads), *rest)), lowered)


def test_overwriting_what_another_position_reads_is_caught() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((4, 4)), "x")
        graph = builder.graph([], {x: add(x, transpose(x, (1, 0)))})
    plan, lowered = plan_graph(graph, NullBackend())
    audit(plan, lowered)
    first = plan.steps[0]
    target = View(x, 0, (4, 4), (4, 1))
    unsafe = Step(first.nodes, first.reads, dict.fromkeys(first.writes, target))
    with pytest.raises(AssertionError, match=r"elsewhere than it reads|read twice"):
        audit(replace(plan, steps=(unsafe,)), lowered[:1])
