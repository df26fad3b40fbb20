"""Signs of disturbance, found in recorded blocks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pocketgrad.bench.disturbance import findings, two_groups
from pocketgrad.bench.runner import Block
from pocketgrad.bench.unrest import factors, unsteadiness

# Seconds per step of a chain of small launches on Intel's runtime, in blocks of 0.1 s: some ran at
# one core's rate while both were busy.
BIMODAL = (1.02, 1.00, 1.98, 1.01, 1.95, 2.02, 0.99, 1.03, 1.97, 1.00, 1.01, 1.99)
STEADY = (1.00, 1.02, 0.99, 1.01, 1.00, 1.03, 0.98, 1.00, 1.01, 0.99, 1.02, 1.00)


def blocks(times: Sequence[float], cores: float = 2.0, others: float | None = 0.0) -> list[Block]:
    return [
        Block(2, round(t * 2e9), round(t * 2e9 * cores), 1.0, others=others, stolen=0.0)
        for t in times
    ]


def kinds(times: Sequence[float], **more: float) -> list[str]:
    return [f.kind for f in findings(blocks(times, **more))]


def test_steady_times_have_no_finding() -> None:
    assert kinds(STEADY) == []


def test_half_speed_is_found_with_its_cause() -> None:
    (found,) = findings(blocks(BIMODAL))
    assert found.kind == "half speed"
    assert "5 of 12 blocks took 2 times as long" in found.text
    assert "2.0 cores were busy: its threads wait for each other" in found.text


def test_blocks_on_one_core_have_another_cause() -> None:
    (found,) = findings(blocks(BIMODAL, cores=1.0))
    assert "some ran on fewer cores" in found.text


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        ([1.0 + 0.03 * i for i in range(12)], "drift"),
        ([1.3, 1.0, 1.6, 0.9, 1.4, 1.1, 1.5, 1.0, 1.25, 1.35, 0.95, 1.2], "wide spread"),
    ],
)
def test_drifting_and_scattered_times_are_found(times: list[float], kind: str) -> None:
    assert kinds(times) == [kind]


def test_one_late_block_is_no_second_mode() -> None:
    assert two_groups([*STEADY, 2.0]) is None


def test_other_load_is_found() -> None:
    assert kinds(STEADY, others=0.8) == ["other load"]


def test_a_participant_that_does_not_idle_is_named() -> None:
    noisy = [Block(2, 10**9, 10**9, 1.0, 0.0, 0.0, {"torch:eager": 0.9})] * 6
    (found,) = findings(noisy)
    assert found.kind == "not idle"
    assert "torch:eager used up to 0.9 cores in 6 of 6 blocks" in found.text


def test_what_slows_everyone_is_the_machine_and_no_half_speed() -> None:
    runs = [[t * scale for t in BIMODAL] for scale in (1.0, 3.0, 0.1)]
    common = factors(runs)
    assert [f.kind for f in unsteadiness(common)] == ["machine speed"]
    assert all(not findings(blocks(run), common) for run in runs)


def test_half_speed_of_one_among_three_is_its_own() -> None:
    common = factors([BIMODAL, STEADY, STEADY])
    assert not unsteadiness(common)
    assert [f.kind for f in findings(blocks(BIMODAL), common)] == ["half speed"]
