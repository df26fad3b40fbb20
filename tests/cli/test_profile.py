"""`pocketgrad profile`: the summary, JSON, files, errors, Ctrl-C."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pocketgrad.cli.__main__ import main
from pocketgrad.profile import load
from pocketgrad.train.session import Session

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "sysfs"


def arguments(*more: str, device: str = "reference", steps: int = 4) -> list[str]:
    head = ["profile", "--model", "lenet5", "--batch", "4", "--steps", str(steps)]
    return [*head, "--device", device, "--no-overhead", *more]


def test_the_summary_answers_what_is_asked(device: str, capsys, tmp_path) -> None:
    out = tmp_path / "out"
    assert main(arguments("--out", str(out), device=device)) == 0
    text, err = capsys.readouterr()
    for word in ("forward", "backward", "update", "gap", "conv2d", "copy share", "step time",
                 "memory of the plan", "sampling took", "CPU utilisation"):  # fmt: skip
        assert word in text, word
    if device != "reference":
        assert "flop/s of" in text
    for what in ("power", "temperature", "GPU"):
        assert f"{what}: not available: " in text or what in str(load(out).trace.series)
    assert "measuring steps" in err
    assert len(load(out).measured_steps) == 4
    assert str(out / "profile.json") in text


def test_json_is_one_object(capsys) -> None:
    assert main(arguments("--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == 4
    assert found["metadata"]["model"] == "lenet5"
    assert {p["name"] for p in found["phases"]} >= {"forward", "backward", "update"}
    assert found["ops"][0]["median_ns"] > 0
    assert found["overhead"]["slowdown"] is None
    assert all(found["absent"].values())
    assert not found["interrupted"]


def test_what_profiling_costs_is_measured_in_turn(capsys, monkeypatch) -> None:
    from pocketgrad.profile import overhead

    monkeypatch.setattr(overhead, "BLOCK_NS", 1_000_000)
    line = [a for a in arguments("--json") if a != "--no-overhead"]
    assert main(line) == 0
    assert -1 < json.loads(capsys.readouterr().out)["overhead"]["slowdown"] < 5


def test_a_recorded_device_gives_joules(capsys) -> None:
    tree = str(FIXTURES / "raspberry-pi-5")
    assert main(arguments("--json", "--device-tree", tree)) == 0
    found = json.loads(capsys.readouterr().out)
    assert "power" not in found["absent"]
    (main_total,) = [t for t in found["energy"] if t["main"]]
    joules = sum(p["energy"]["joules"] for p in found["phases"])
    assert joules == pytest.approx(main_total["figure"]["joules"], rel=0.01)


def test_a_data_set_can_be_named(capsys) -> None:
    assert main(arguments("--data", "embedded", steps=2)) == 0
    assert "batch 4" in capsys.readouterr().out


def test_a_model_of_another_task_trains_on_that_task_s_data(capsys) -> None:
    assert main(arguments("--model", "dqn-vector", "--json", steps=1)) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--model", "lenet6"), "no model is named 'lenet6'; did you mean lenet5"),
        (("--steps", "0"), "--steps 0: choose 1 or more"),
        (("--out", "/proc/none/there"), "cannot be written to /proc/none/there"),
        (("--device-tree", "/nowhere"), "/nowhere is no recorded device"),
        (("--device", "abacus"), "abacus"),
    ],
)
def test_mistakes_are_told(more: tuple[str, ...], message: str, capsys) -> None:
    assert main([*arguments(), *more]) == 2
    assert message in capsys.readouterr().err


def test_ctrl_c_keeps_what_was_measured(capsys, monkeypatch, tmp_path) -> None:
    train, calls = Session.train, []

    def interrupted(self: Session, *args):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return train(self, *args)

    monkeypatch.setattr(Session, "train", interrupted)
    assert main(arguments("--out", str(tmp_path), steps=50)) == 130
    out, err = capsys.readouterr()
    assert "2 steps measured" in out
    assert "interrupted after 2 measured steps" in err
    assert len(load(tmp_path).steps) == 5


def test_ctrl_c_before_the_first_step_leaves_nothing(capsys, monkeypatch, tmp_path) -> None:
    def interrupted(self: Session, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "train", interrupted)
    assert main(arguments("--out", str(tmp_path))) == 130
    assert list(tmp_path.iterdir()) == []
