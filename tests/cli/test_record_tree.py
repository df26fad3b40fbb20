"""`pocketgrad record-tree`: the folder it writes can be played back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.telemetry.played import device, readings

from pocketgrad.cli.__main__ import main
from pocketgrad.telemetry import find, machine
from pocketgrad.telemetry.playback import Playback, load


def test_a_device_is_recorded(tmp_path: Path, capsys, monkeypatch) -> None:
    original = device("jetson-orin")
    monkeypatch.setattr(machine, "this_machine", lambda: Playback(original).machine)
    assert main(["record-tree", "--out", str(tmp_path / "orin"), "--seconds", "0"]) == 0
    text = capsys.readouterr().out
    assert "rapl: not available: /sys/class/powercap does not exist" in text
    assert readings(load(tmp_path / "orin")) == readings(original)


@pytest.mark.device
def test_this_machine_is_recorded_and_says_what_it_lacks(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "here"
    assert main(["record-tree", "--out", str(folder), "--seconds", "0", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = find(Playback(load(folder)).machine)
    assert said["channels"] == [c.name for p in found.probes for c in p.channels]
    assert said["files"] > 0
    assert all(said["absent"].values())


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys) -> None:
    (tmp_path / "mine").write_text("x")
    assert main(["record-tree", "--out", str(tmp_path)]) == 2
    assert "is not empty; name a new folder with --out" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_lengths_that_cannot_be_are_refused(tmp_path: Path, capsys) -> None:
    assert main(["record-tree", "--out", str(tmp_path / "a"), "--seconds", "-1"]) == 2
    assert "record from 0 to 3600 s" in capsys.readouterr().err
