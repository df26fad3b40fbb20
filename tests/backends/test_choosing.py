"""What a selector means, on made-up surveys."""

from __future__ import annotations

import dataclasses

import pytest
from tests.helpers.drivers import ADRENO, FPGA, INTEL, NVIDIA, POCL, survey_of

from pocketgrad.backends.advice import System, install_hints
from pocketgrad.backends.choosing import pick
from pocketgrad.backends.quarantine import Verdict
from pocketgrad.backends.runtimes import RuntimeReport, Survey
from pocketgrad.base.errors import DeviceError, UnknownNameError

ALL = survey_of(INTEL, FPGA, POCL, ADRENO, NVIDIA, POCL)
LAPTOP = System("x86_64", linux=True, termux=False, debian=True, nvidia=False, amd=False, dri=False)


def sound(_):
    return ()


def chosen(found: Survey, selector: str) -> str:
    device = pick(found, selector, sound).device
    assert device is not None
    return device.ident


def test_devices_are_counted_within_their_family() -> None:
    idents = [device.ident for device in ALL.devices]
    assert idents == ["intel:0", "intel-fpga:0", "pocl:0", "adreno:0", "nvidia:0", "pocl:1"]


@pytest.mark.parametrize(
    ("devices", "ident"),
    [
        ((INTEL, POCL, ADRENO, NVIDIA), "nvidia:0"),
        ((INTEL, POCL, ADRENO), "adreno:0"),
        ((INTEL, POCL), "pocl:0"),
        ((FPGA, INTEL), "intel:0"),
    ],
)
def test_auto_prefers_gpus_then_pocl_then_intel(devices, ident: str) -> None:
    assert chosen(survey_of(*devices), "auto") == ident


def test_auto_without_a_device_is_the_reference_and_says_what_to_install() -> None:
    broken = RuntimeReport("/lib/x.so", "/etc/x.icd", "crashed", "load")
    choice = pick(Survey((broken,)), "auto", sound)
    assert (choice.backend, choice.device) == ("reference", None)
    assert "x.so: crashed" in choice.why
    assert "to install one" in choice.why


def test_auto_passes_over_a_device_that_failed_its_check() -> None:
    bad = (Verdict("conv", ok=False, reason="0.5 instead of 1"),)
    choice = pick(ALL, "auto", lambda device: bad if device.kind == "gpu" else ())
    assert choice.device is not None
    assert choice.device.ident == "pocl:0"
    assert "nvidia:0 is passed over: its self-check failed for conv" in choice.why


def test_a_failing_device_is_still_taken_when_it_is_the_only_one() -> None:
    choice = pick(survey_of(POCL), "auto", lambda _: (Verdict("conv", ok=False),))
    assert choice.device is not None
    assert "without conv, which failed the self-check" in choice.why


@pytest.mark.parametrize(
    ("selector", "ident"),
    [
        ("cpu", "pocl:0"),
        ("gpu", "nvidia:0"),
        ("pocl", "pocl:0"),
        ("PoCL:1", "pocl:1"),
        ("intel", "intel:0"),
        ("nvidia", "nvidia:0"),
        ("snapdragon", "adreno:0"),
        ("Adreno 650", "adreno:0"),
        ("NVIDIA CUDA:0", "nvidia:0"),
    ],
)
def test_a_selector_finds_its_device(selector: str, ident: str) -> None:
    assert chosen(ALL, selector) == ident


@pytest.mark.parametrize("name", ["reference", "null"])
def test_a_backend_without_a_device_needs_no_survey(name: str) -> None:
    choice = pick(Survey(()), name, sound)
    assert (choice.backend, choice.device) == (name, None)


def test_several_matches_are_named() -> None:
    assert "also matching: pocl:1" in pick(ALL, "pocl", sound).why


def test_a_known_kind_that_is_not_here_says_what_is() -> None:
    with pytest.raises(DeviceError, match="no 'gpu' device on this machine; usable here: pocl:0"):
        pick(survey_of(POCL), "gpu", sound)


def test_a_device_that_cannot_be_used_says_why() -> None:
    broken = dataclasses.replace(POCL, unusable="its driver: crashed")
    with pytest.raises(DeviceError, match="cannot be used: pocl:0: its driver: crashed"):
        pick(survey_of(broken, INTEL), "pocl", sound)


@pytest.mark.parametrize("selector", ["pocl:7", "pcol:0", "", "nonsense"])
def test_an_unknown_selector_says_what_is_known(selector: str) -> None:
    with pytest.raises(UnknownNameError, match=r"no device is named '.*'; (did you mean|known)"):
        pick(ALL, selector, sound)


@pytest.mark.parametrize(
    ("change", "families", "words"),
    [
        ({}, (), "apt-get install pocl-opencl-icd"),
        ({}, ("pocl",), "pip install 'pocketgrad[cpu]'"),
        ({"debian": False}, (), "portablecl.org"),
        ({"nvidia": True}, ("pocl", "intel"), "NVIDIA_DRIVER_CAPABILITIES"),
        ({"amd": True}, ("pocl", "intel"), "rocm-opencl"),
        ({"dri": True}, ("pocl",), "intel-opencl-icd"),
        ({"termux": True}, (), "pkg install ocl-icd opencl-vendor-driver"),
    ],
)
def test_what_to_install_depends_on_the_machine(change, families, words: str) -> None:
    assert words in " ".join(install_hints(dataclasses.replace(LAPTOP, **change), families))


def test_a_machine_with_both_cpu_runtimes_lacks_nothing() -> None:
    assert install_hints(LAPTOP, ("pocl", "intel")) == ()


def test_an_arm_board_is_not_told_to_install_intels_wheel() -> None:
    board = dataclasses.replace(LAPTOP, machine="aarch64")
    assert "pocketgrad[cpu]" not in " ".join(install_hints(board, ()))
