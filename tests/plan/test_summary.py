"""The summary of a plan: the table is golden text, bytes by kind add up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.helpers.training import plain_net, sgd

from pocketgrad.plan.summary import KINDS, PlanSummary
from pocketgrad.train import Trainer


def summary(batch: int = 8) -> PlanSummary:
    trainer = Trainer(plain_net(), optimizer=sgd(), device="null")
    return trainer.plan(batch, (1, 4, 4))


@pytest.mark.golden
def test_the_printed_plan_is_as_agreed(golden: Callable[[str, str], None]) -> None:
    golden("plan/small-net.txt", f"{summary()}\n")


def test_launches_are_numbered_without_gaps() -> None:
    rows = summary().launches
    numbers = sorted({row.first + i for row in rows for i in range(row.count)})
    assert numbers == list(range(1, summary().launch_count + 1))
    assert [row.first for row in rows] == sorted(row.first for row in rows)
    assert all(row.kernel and row.outputs for row in rows)


def test_bytes_by_kind_are_all_the_plan_allocates() -> None:
    made = Trainer(plain_net(), optimizer=sgd(), device="null")
    shown = made.plan(8, (1, 4, 4))
    (plan, _), *_ = made.session._plans.values()
    assert tuple(shown.peak_by_kind) == KINDS
    assert shown.peak_nbytes == plan.peak_nbytes
    parameters = 4 * made.net.parameter_count()
    assert shown.peak_by_kind["parameters"] == parameters
    assert shown.peak_by_kind["gradients"] == parameters
    assert shown.peak_by_kind["optimizer state"] >= parameters
    assert shown.peak_by_kind["activations"] >= 8 * 12 * 4  # the output of tanh


def test_more_samples_need_more_activations_and_no_more_parameters() -> None:
    small, large = summary(8), summary(800)
    assert small.peak_by_kind["parameters"] == large.peak_by_kind["parameters"]
    assert 50 * small.peak_by_kind["activations"] < large.peak_by_kind["activations"]
    assert 50 * small.flops < large.flops < 200 * small.flops
    assert "peak memory" in str(large)
