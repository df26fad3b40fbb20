"""Drivers that work, crash, hang, or are not there: each is a report, and none hides another."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import require_runtime
from tests.helpers.drivers import DEVICE, library, survey_of

from pocketgrad.backends import platforms, probing
from pocketgrad.backends.icds import Icd, discover
from pocketgrad.backends.probing import Ending, judge, probe_all
from pocketgrad.backends.runtimes import Survey, runtime_from_json, to_json
from pocketgrad.base.config import Settings, settings
from pocketgrad.base.errors import DeviceError

ICD = Icd("/lib/x.so", "/etc/x.icd")


@pytest.fixture
def config(tmp_path: Path) -> Settings:
    """A machine whose drivers are what the test puts into tmp_path/vendors."""
    (tmp_path / "vendors").mkdir()
    return Settings(tmp_path / "cache", 30.0, verify=False, icd_vendors=str(tmp_path / "vendors"))


def announce(config: Settings, name: str, path: Path | str) -> None:
    Path(config.icd_vendors, f"{name}.icd").write_text(f"{path}\n")


def only_report(config: Settings, timeout_s: float = 30.0):
    (report,) = platforms.survey(
        config=dataclasses.replace(config, probe_timeout_s=timeout_s)
    ).runtimes
    return report


def test_no_driver_at_all_is_an_empty_survey(config: Settings) -> None:
    assert platforms.survey(config=config) == Survey(())


def test_a_missing_library_is_a_load_failure_with_advice(config: Settings) -> None:
    announce(config, "gone", "/nowhere/libgone.so")
    report = only_report(config)
    assert report.outcome == "load failure"
    assert "cannot open shared object file" in report.reason
    assert "reinstall libgone.so" in report.advice


def test_a_file_that_is_no_library_is_a_load_failure(config: Settings, tmp_path: Path) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("this is prose, and long enough to have room for a header of a library" * 9)
    announce(config, "text", text)
    report = only_report(config)
    assert report.outcome == "load failure"
    assert "invalid ELF header" in report.reason
    assert "no library" in report.advice


def test_an_icd_file_that_cannot_be_read_is_a_load_failure(config: Settings) -> None:
    Path(config.icd_vendors, "folder.icd").mkdir()
    report = only_report(config)
    assert report.outcome == "load failure"
    assert "Is a directory" in report.reason


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_library_without_permission_is_a_load_failure(config: Settings, tmp_path: Path) -> None:
    built = library("no platforms", tmp_path)
    built.chmod(0)
    announce(config, "locked", built)
    assert "readable" in only_report(config).advice


@pytest.mark.parametrize(
    ("kind", "outcome", "stage", "words"),
    [
        ("aborts at load", "crashed", "load", "Aborted while its library was loaded"),
        ("crashes when asked", "crashed", "devices", "Segmentation fault while it listed"),
        ("no driver", "load failure", "load", "not an OpenCL driver"),
        ("no platforms", "no devices", "devices", "PLATFORM_NOT_FOUND"),
    ],
)
def test_a_broken_driver_is_a_report(
    config: Settings, tmp_path: Path, kind: str, outcome: str, stage: str, words: str
) -> None:
    announce(config, "broken", library(kind, tmp_path))
    report = only_report(config)
    assert (report.outcome, report.stage) == (outcome, stage)
    assert words in report.reason
    assert report.advice


@pytest.mark.parametrize(
    ("kind", "stage"), [("hangs at load", "load"), ("hangs when asked", "devices")]
)
def test_a_driver_that_does_not_answer_is_hanging(
    config: Settings, tmp_path: Path, kind: str, stage: str
) -> None:
    announce(config, "slow", library(kind, tmp_path))
    report = only_report(config, timeout_s=1.5)
    assert (report.outcome, report.stage) == ("hanging", stage)
    assert "no answer within 1.5 s" in report.reason


def test_a_hanging_build_is_hanging_and_its_devices_are_named(
    config: Settings, tmp_path: Path
) -> None:
    script = tmp_path / "fake probe.py"
    device = {**dataclasses.asdict(DEVICE), "extensions": ["a"]}
    script.write_text(
        "import json, time\n"
        f"print(json.dumps({{'stage': 'build', 'devices': [{device!r}]}}), flush=True)\n"
        "time.sleep(60)\n"
    )
    impatient = dataclasses.replace(config, probe_timeout_s=1.0)
    (report,) = probe_all([ICD], impatient, script=str(script))
    assert (report.outcome, report.stage) == ("hanging", "build")
    assert "while it built and ran a first kernel" in report.reason
    assert report.devices[0].unusable == "its driver: hanging"


def test_one_broken_driver_hides_no_other(config: Settings, tmp_path: Path) -> None:
    announce(config, "a", library("aborts at load", tmp_path))
    announce(config, "b", "/nowhere/libgone.so")
    announce(config, "c", library("no platforms", tmp_path))
    found = platforms.survey(config=config)
    outcomes = [report.outcome for report in found.runtimes]
    assert outcomes == ["crashed", "load failure", "no devices"]


def test_a_crashing_driver_is_not_loaded_a_second_time(
    config: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(config, "a", library("aborts at load", tmp_path))
    first = platforms.survey(config=config)
    monkeypatch.setattr(probing, "_start", lambda *_: pytest.fail("it was probed again"))
    assert platforms.survey(config=config) == first


def test_a_changed_library_is_probed_again(config: Settings, tmp_path: Path) -> None:
    built = library("aborts at load", tmp_path)
    announce(config, "a", built)
    assert only_report(config).outcome == "crashed"
    library("no platforms", tmp_path).replace(built)
    assert only_report(config).outcome == "no devices"


def test_a_cache_of_another_version_is_probed_again(config: Settings) -> None:
    announce(config, "a", "/nowhere/libgone.so")
    first = only_report(config)
    (file,) = (config.cache_dir / "runtimes").iterdir()
    file.write_text('{"outcome": "ok"}')
    assert only_report(config) == first


def test_a_cache_that_cannot_be_written_is_noted(config: Settings) -> None:
    config.cache_dir.write_text("a file where the folder should be")
    announce(config, "a", "/nowhere/libgone.so")
    (note,) = platforms.survey(config=config).notes
    assert "cannot be written (" in note
    assert "POCKETGRAD_CACHE" in note


def test_the_loader_sees_only_drivers_that_passed(
    config: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", "anything")
    found = survey_of(DEVICE, DEVICE)
    broken = dataclasses.replace(found.runtimes[0], outcome="crashed")
    platforms.prepare(dataclasses.replace(found, runtimes=(broken, found.runtimes[1])), config)
    texts = [f.read_text() for f in Path(os.environ["OCL_ICD_VENDORS"]).glob("*.icd")]
    assert texts == ["/lib/1.so\n"]


@pytest.mark.parametrize(
    ("ending", "outcome", "words"),
    [
        (
            Ending([], 1, "ModuleNotFoundError: No module named 'pyopencl'"),
            "load failure",
            "pyopencl",
        ),
        (Ending([{"stage": "devices"}], -4, "noise\nlast words"), "crashed", "last words"),
        (Ending([{"stage": "build", "devices": []}], 3), "crashed", "exit code 3"),
        (Ending([{"stage": "done", "devices": []}], 0), "no devices", "has no device"),
        (Ending([{"stage": "devices"}], None), "hanging", "while it listed its devices"),
    ],
)
def test_how_a_child_ended_is_judged(
    config: Settings, ending: Ending, outcome: str, words: str
) -> None:
    report = judge(ICD, ending, config)
    assert report.outcome == outcome
    assert words in report.reason
    assert report.advice


def test_a_report_survives_its_file() -> None:
    (runtime,) = survey_of(DEVICE).runtimes
    assert runtime_from_json(to_json(runtime)) == runtime


@pytest.mark.device
@pytest.mark.parametrize("name", ["pocl", "intel"])
def test_a_real_runtime_passes_and_its_device_opens(name: str) -> None:
    require_runtime(name)
    report = platforms.find(name)
    assert (report.family, report.kind, report.usable) == (name, "cpu", True)
    assert report.compute_units >= 1
    assert report.max_alloc_nbytes > 0
    assert report.base_align_nbytes in (64, 128, 256, 512, 1024, 2048, 4096)
    device = platforms.open_device(report)
    assert device.name.strip() == report.name
    assert device.max_compute_units == report.compute_units


@pytest.mark.device
def test_a_device_that_has_gone_is_a_device_error() -> None:
    require_runtime("pocl")
    gone = dataclasses.replace(platforms.find("pocl"), name="another machine's processor")
    with pytest.raises(DeviceError, match=r"not there any more.*--refresh"):
        platforms.open_device(gone)


@pytest.mark.device
def test_a_crashing_driver_beside_a_good_one_does_no_harm(config: Settings, tmp_path: Path) -> None:
    """The program itself survives, in a process where nothing was loaded before."""
    require_runtime("pocl")
    (pocl,) = [icd for icd in discover(settings()) if "pocl" in icd.library]
    announce(config, "a", library("aborts at load", tmp_path))
    announce(config, "b", pocl.library)
    program = (
        "from pocketgrad.backends import platforms\n"
        "print(platforms.open_device(platforms.find('auto')).platform.name)\n"
    )
    env = {
        **os.environ,
        "OCL_ICD_VENDORS": config.icd_vendors,
        "POCKETGRAD_CACHE": str(config.cache_dir),
    }
    answer = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert answer.stdout == "Portable Computing Language\n", answer.stderr
