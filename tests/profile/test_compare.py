"""What got slower, and whether that is more than noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.profile.made import MS, launch, profiled, timeline, trace

from pocketgrad.profile.compare import compare, holm, mann_whitney
from pocketgrad.trace.profile import Profile

A, B = launch("conv2d", "a"), launch("relu", "b")


def noisy(a_ms: float, seed: int, steps: int = 20, **metadata) -> Profile:
    """A of ``a_ms`` and B of 2 ms, each with 3 % noise."""
    random = np.random.default_rng(seed)
    made = profiled(timeline([A, B], [(0, 0, 4 * MS), (1, 4 * MS, 6 * MS)], steps, 6 * MS), trace())
    times = {"conv2d": a_ms * MS, "relu": 2 * MS}
    ops = tuple(
        replace(row, step_ns=times[row.op] * random.normal(1, 0.03, steps)) for row in made.ops
    )
    return replace(made, ops=ops, metadata={**made.metadata, **metadata})


def test_a_slower_operation_is_found_and_the_other_is_not_blamed() -> None:
    found = compare(noisy(4.0, 1), noisy(4.4, 2))
    changes = {c.op: c for c in found.ops}
    assert found.ops[0].op == "conv2d"
    assert changes["conv2d"].significant
    assert changes["conv2d"].ratio == pytest.approx(1.1, rel=0.03)
    assert not changes["relu"].significant
    assert "conv2d" in str(found)
    assert " *" in str(found)


def test_equal_profiles_raise_no_alarm() -> None:
    """At 5 %, of 40 comparisons without a difference two would be expected; Holm keeps it so."""
    alarms = [
        any(c.significant for c in compare(noisy(4.0, 2 * i), noisy(4.0, 2 * i + 1)).ops)
        for i in range(40)
    ]
    assert sum(alarms) <= 5


def test_operations_of_one_side_are_shown_untested() -> None:
    before = noisy(4.0, 1)
    after = replace(noisy(4.0, 2), ops=noisy(4.0, 2).ops[:1])
    gone = next(c for c in compare(before, after).ops if c.op == "relu")
    assert gone.after_ns is None
    assert gone.p is None
    assert not gone.significant
    assert "not tested" in str(compare(before, after))


def test_too_few_steps_are_not_tested_and_other_devices_are_noted() -> None:
    found = compare(noisy(4.0, 1, steps=3, device="a"), noisy(9.0, 2, steps=3, device="b"))
    assert not any(c.significant for c in found.ops)
    assert any("3 measured steps" in w for w in found.warnings)
    assert any("device differs: a before, b after" in w for w in found.warnings)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 0.01219),  # U = 0: z = (12.5 − 0.5) / √(25/12 · 11)
        ([1, 2, 3], [1, 2, 3], 1.0),
        ([5, 5, 5], [5, 5, 5], 1.0),  # nothing but ties
        ([1, 3, 5, 7], [2, 4, 6, 8], 0.66500),  # U = 6: z = (2 − 0.5) / √(16/12 · 9)
    ],
)
def test_ranks_by_hand(first, second, p: float) -> None:
    assert mann_whitney(np.array(first, float), np.array(second, float)) == pytest.approx(
        p, abs=1e-4
    )


def test_holm_by_hand() -> None:
    """0.01 × 4, 0.02 × 3, 0.03 × 2 and 0.5; never below the one before."""
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([]) == []
