"""The runner, with participants that answer from a script: no clock, no process, no device."""

from __future__ import annotations

from pathlib import Path

from tests.bench.mock import Mock, honest

from pocketgrad.bench.result import result
from pocketgrad.bench.runner import LEAST_BLOCKS, Runner, Settings, fitting_steps
from pocketgrad.bench.task import Workload

OURS, THEIRS = "pocketgrad:pocl:0", "torch:eager"
SETTINGS = Settings(seconds=4.0, rounds=8)


def run(*mocks: Mock, settings: Settings = SETTINGS) -> Runner:
    runner = Runner(mocks, Path("nowhere"), settings, pause=lambda seconds: None)
    runner.run()
    assert all(mock.closed for mock in mocks)
    return runner


def measured(*mocks: Mock) -> dict[str, object]:
    runner = run(*mocks)
    return result(Workload("lenet5", 32), runner.entries, 10**9, {"notes": runner.notes})


def test_participants_take_turns_block_by_block() -> None:
    mocks = [Mock(name, [0.01]) for name in (OURS, THEIRS, "torch:channels-last")]
    order: list[str] = []
    for mock in mocks:
        mock.order = order
    runner = run(*mocks)
    turns = len(mocks) * SETTINGS.rounds
    assert order[-turns:] == [m.participant.name for m in mocks] * SETTINGS.rounds
    assert all(len(e.blocks) == SETTINGS.rounds for e in runner.entries.values())


def test_a_block_takes_its_share_of_the_seconds() -> None:
    assert fitting_steps(0.01, 0.5) == 40
    assert fitting_steps(3.0, 0.5) == 2
    runner = run(Mock(OURS, [0.01]), Mock(THEIRS, [1.0]))
    assert runner.entries[OURS].steps == 40
    assert runner.entries[THEIRS].steps == 2
    assert len(runner.entries[THEIRS].blocks) < SETTINGS.rounds  # its patience limit
    assert len(runner.entries[THEIRS].blocks) >= LEAST_BLOCKS


def test_speedups_are_ratios_of_medians_to_the_best_float32_variant() -> None:
    found = measured(
        Mock(OURS, [0.01]),
        Mock("pocketgrad:intel:0", [0.02]),
        Mock(THEIRS, [0.04]),
        Mock("torch:channels-last", [0.03]),
        Mock("torch:bf16", [0.005], precision="bfloat16"),
    )
    speedups = found["speedup"]
    assert isinstance(speedups, list)
    assert [(s["device"], s["peer"], s["variant"]) for s in speedups] == [
        ("pocl:0", "torch", "channels-last"),
        ("intel:0", "torch", "channels-last"),
    ]
    assert abs(speedups[0]["value"] - 3) < 1e-9
    assert found["speedup_best_torch_fp32"] == speedups[0]["value"]


def test_one_that_does_not_agree_from_the_start_is_not_timed() -> None:
    runner = run(Mock(OURS, [0.01], loss=lambda n: honest(n) + 0.01), Mock(THEIRS, [0.02]))
    entry = runner.entries[OURS]
    assert entry.outcome == "disagrees"
    assert "loss of step 1 is 2.01, 2 is expected" in entry.reason
    assert not entry.blocks


def test_one_that_skips_updates_is_not_timed() -> None:
    runner = run(Mock(OURS, [0.01], loss=lambda n: 2.0), Mock(THEIRS, [0.02]))
    assert runner.entries[OURS].outcome == "disagrees"
    assert "loss of step 3" in runner.entries[OURS].reason


def test_one_that_skips_work_while_it_is_timed_fails() -> None:
    lazy = Mock(OURS, [0.001], block_loss=lambda n: 2.0)
    runner = run(lazy, Mock(THEIRS, [0.02]))
    assert runner.entries[OURS].outcome == "skips work"
    assert "after the timed steps the loss of step 401 is 2" in runner.entries[OURS].reason
    assert not runner.entries[OURS].took_part


def test_one_block_that_skips_work_is_enough_to_fail() -> None:
    losses = iter([0] * 6 + [1] + [0] * 100)
    mock = Mock(OURS, [0.01], block_loss=lambda n: 2.0 if next(losses) else honest(n))
    assert run(mock, Mock(THEIRS, [0.02])).entries[OURS].outcome == "skips work"


def test_losses_that_hardly_move_are_said_to_prove_little() -> None:
    flat = [Mock(name, [0.01], loss=lambda n: 2.0) for name in (OURS, THEIRS)]
    assert any("choose a larger --lr" in note for note in run(*flat).notes)


def test_an_absent_or_crashing_peer_is_an_outcome() -> None:
    absent, crashing = Mock("torch:eager", [0.01]), Mock("torch:compile", [0.01])
    absent.fails["load"] = ("absent", "No module named 'torch'")
    crashing.fails["block"] = ("crashed", "Segmentation fault")
    runner = run(Mock(OURS, [0.01]), absent, crashing)
    assert runner.entries["torch:eager"].outcome == "absent"
    assert runner.entries["torch:compile"].outcome == "crashed"
    assert runner.entries[OURS].took_part


def test_ctrl_c_keeps_what_was_measured() -> None:
    mock = Mock(THEIRS, [0.01])
    count = iter(range(1000))
    answer = mock._block

    def block(steps: int, lead: int) -> dict[str, object]:
        if next(count) == 6:
            raise KeyboardInterrupt
        return answer(steps, lead)

    mock._block = block  # type: ignore[method-assign]  # a participant that is interrupted
    runner = run(Mock(OURS, [0.01]), mock)
    assert runner.interrupted
    assert runner.entries[OURS].took_part
    assert runner.entries[THEIRS].took_part
    assert "interrupted" in runner.notes[-1]
