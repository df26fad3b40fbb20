"""`pocketgrad doctor`: everything on one page, an exit code to act on, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import require_runtime
from tests.helpers.drivers import POCL, library, survey_of

from pocketgrad.backends import platforms
from pocketgrad.backends.quarantine import Quarantine, Verdict
from pocketgrad.backends.runtimes import RuntimeReport, Survey
from pocketgrad.cli import doctor, selfcheck
from pocketgrad.cli.__main__ import main
from pocketgrad.cli.selfcheck import Outcome

BROKEN = RuntimeReport("/lib/bad.so", "/etc/bad.icd", "hanging", "build", "no answer", "reinstall")
GOOD = Verdict("pointwise", ok=True)
BAD = Verdict("conv", ok=False, reason="0.5 instead of 1", checked="2026-01-01")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Put a made-up machine in place of this one: its survey and what its self-check says."""

    def become(found: Survey, *verdicts: Verdict, problem: str = "") -> None:
        store = Quarantine(tmp_path / "quarantine")

        def check(device):
            store.record(device, verdicts)
            return Outcome(device.ident, verdicts, problem)

        monkeypatch.setattr(platforms, "survey", lambda refresh=False: found)
        monkeypatch.setattr("pocketgrad.backends.quarantine.quarantine", lambda: store)
        monkeypatch.setattr(platforms, "quarantine", lambda: store)
        monkeypatch.setattr(doctor, "check", check)

    return become


def test_a_good_machine_is_well(machine, capsys) -> None:
    machine(survey_of(POCL), GOOD)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for part in ("python", "numpy", "memory", "cache", "0.so", "pocl:0", "auto takes: pocl:0"):
        assert part in text
    assert "self-check of pocl:0: 1 of 1 kernel families computed correctly" in text
    assert text.rstrip().endswith("All is well: this machine can train.")


def test_a_machine_without_drivers_is_told_what_to_install(machine, capsys) -> None:
    machine(Survey(()))
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "No OpenCL driver is installed" in text
    assert "To install:" in text
    assert "Not well: no OpenCL device is usable" in text


def test_a_broken_driver_alone_is_not_usable(machine, capsys) -> None:
    machine(Survey((BROKEN,)))
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "/lib/bad.so: hanging; no answer" in text
    assert "to do: reinstall" in text


def test_a_failed_family_is_in_quarantine(machine, capsys) -> None:
    machine(survey_of(POCL), GOOD, BAD)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "1 of 2 kernel families" in text
    assert "Quarantine" in text
    assert "0.5 instead of 1" in text
    assert "without conv, which failed the self-check" in text


def test_json_has_every_section(machine, capsys) -> None:
    machine(survey_of(POCL), GOOD, BAD, problem="")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["usable"] is True
    assert found["packages"]["numpy"]
    assert found["self_check"][0]["verdicts"][0]["family"] == "pointwise"
    assert found["quarantine"]["pocl:0"][0]["reason"] == "0.5 instead of 1"
    assert {"python", "system", "cache", "memory", "runtimes", "auto", "hints"} <= set(found)


def test_the_self_check_can_be_left_out(machine, capsys) -> None:
    machine(survey_of(POCL), BAD)
    assert main(["doctor", "--no-self-check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["self_check"] == []


def test_a_cache_that_cannot_be_written_is_reported(machine, monkeypatch, capsys) -> None:
    machine(survey_of(POCL), GOOD)
    why = "Read-only file system"
    monkeypatch.setattr("pocketgrad.backends.cachefile.why_not_writable", lambda _: why)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "cannot be written: Read-only file system" in text
    assert "Usable, but the cache folder cannot be written" in text


def test_memory_is_read_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  2048 kB\nMemFree: 1 kB\nMemAvailable:  1024 kB\n")
    found = doctor.memory(tmp_path / "meminfo")
    assert (found["total_nbytes"], found["available_nbytes"]) == (2097152, 1048576)


@pytest.mark.parametrize("text", [None, "", "MemTotal: x kB\n"])
def test_memory_that_cannot_be_read_is_absent_not_zero(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "meminfo").write_text(text)
    found = doctor.memory(tmp_path / "meminfo")
    assert found["total_nbytes"] is None
    assert "not available" in str(found["reason"])


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import os; os.abort()", "the check crashed (Aborted)"),
        ("import sys; sys.exit('no such device')", "exit code 1: no such device"),
        ("import time; time.sleep(60)", "no answer within 1"),
    ],
)
def test_a_self_check_that_ends_badly_is_a_line(
    script: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.Popen
    command = [sys.executable, "-c", script]
    monkeypatch.setattr(subprocess, "Popen", lambda _, **kw: real(command, **kw))
    verdicts, problem = selfcheck._ask("pocl:0", timeout_s=60 if "sleep" not in script else 1)
    assert verdicts == []
    assert words in problem


def test_verdicts_of_the_child_are_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Quarantine(tmp_path)
    answer = json.dumps([{"family": "conv", "ok": False, "reason": "wrong"}])
    monkeypatch.setattr("pocketgrad.backends.quarantine.quarantine", lambda: store)
    real = subprocess.Popen
    command = [sys.executable, "-c", f"print({answer!r})"]
    monkeypatch.setattr(subprocess, "Popen", lambda _, **kw: real(command, **kw))
    outcome = selfcheck.check(POCL)
    assert outcome.problem == ""
    assert [(v.family, v.reason) for v in store.failed(POCL)] == [("conv", "wrong")]


def run_doctor(tmp_path: Path, vendors: Path) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "OCL_ICD_VENDORS": str(vendors),
        "POCKETGRAD_CACHE": str(tmp_path / "cache"),
        "POCKETGRAD_PROBE_TIMEOUT": "20",
    }
    command = [sys.executable, "-m", "pocketgrad.cli", "doctor", "--no-self-check"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_the_program_survives_drivers_of_every_bad_kind(tmp_path: Path) -> None:
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    for index, kind in enumerate(("aborts at load", "crashes when asked", "no driver")):
        (vendors / f"{index}.icd").write_text(str(library(kind, tmp_path)))
    (vendors / "gone.icd").write_text("/nowhere/libgone.so")
    (vendors / "folder.icd").mkdir()
    answer = run_doctor(tmp_path, vendors)
    assert answer.returncode == 1
    assert answer.stderr == ""
    assert answer.stdout.count("crashed") >= 2
    assert answer.stdout.count("load failure") >= 3


@pytest.mark.device
@pytest.mark.parametrize("name", ["pocl", "intel"])
def test_this_machine_is_usable(name: str, capsys) -> None:
    require_runtime(name)
    assert main(["doctor", "--no-self-check", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    idents = [device["ident"] for runtime in found["runtimes"] for device in runtime["devices"]]
    assert f"{name}:0" in idents
