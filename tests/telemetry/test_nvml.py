"""NVML with a made-up library: units, cards of one name, and what a card does not support."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pocketgrad.telemetry import gpu_nvidia, gpu_nvml
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.playback import Playback, Recording


class NVMLError(Exception):
    pass


def library(names, power_supported: bool = True) -> SimpleNamespace:
    """The functions that are called, for cards whose counter stands at 5 J, 6 J…"""

    def power(card: int) -> int:
        if not power_supported:
            raise NVMLError("Not Supported")
        return 168_250

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlDeviceGetCount=lambda: len(names),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda card: names[card],
        nvmlDeviceGetPciInfo=lambda card: SimpleNamespace(busId=f"0000:0{card}:00.0"),
        nvmlDeviceGetTotalEnergyConsumption=lambda card: 5000 + 1000 * card,
        nvmlDeviceGetPowerUsage=power,
        nvmlDeviceGetUtilizationRates=lambda card: SimpleNamespace(gpu=98),
        nvmlDeviceGetMemoryInfo=lambda card: SimpleNamespace(used=4096),
        nvmlDeviceGetClockInfo=lambda card, kind: {1: 1890}[kind],
        nvmlDeviceGetTemperature=lambda card, kind: {0: 61}[kind],
    )


def machine(nvml: SimpleNamespace) -> Machine:
    files = Playback(Recording({})).machine
    return Machine(files.files, files.run, nvml=lambda: nvml)


@pytest.mark.parametrize("name", ["NVIDIA H200", b"NVIDIA H200"])
def test_values_are_in_our_units(name) -> None:
    values: dict[str, float] = {}
    for probe in gpu_nvml.find(machine(library([name]))).probes:
        values |= probe.read()
    assert values == {
        "gpu_nvml/NVIDIA H200/energy": 5.0,
        "gpu_nvml/NVIDIA H200/power": 168.25,
        "gpu_nvml/NVIDIA H200/utilisation": 98,
        "gpu_nvml/NVIDIA H200/memory": 4096,
        "gpu_nvml/NVIDIA H200/frequency": 1890e6,
        "gpu_nvml/NVIDIA H200/temperature": 61,
    }


def test_two_cards_of_one_name_are_told_apart_by_their_place() -> None:
    probes = gpu_nvml.find(machine(library(["A", "A"]))).probes
    energy = [p.channels[0].name for p in probes if p.channels[0].quantity == "energy"]
    assert energy == ["gpu_nvml/A@0000:00:00.0/energy", "gpu_nvml/A@0000:01:00.0/energy"]


def test_what_a_card_does_not_support_is_absent() -> None:
    found = gpu_nvml.find(machine(library(["A"], power_supported=False)))
    assert [str(a) for a in found.absent] == [
        "gpu_nvml/A/power: not available: NVML: Not Supported"
    ]
    assert len(found.probes) == 5


def test_where_nvml_answers_the_command_is_not_asked() -> None:
    (absent,) = gpu_nvidia.find(machine(library(["A"]))).absent
    assert "NVML answers for the cards" in absent.reason


def test_without_a_card_or_the_library_the_reason_is_given() -> None:
    assert "no card" in gpu_nvml.find(machine(library([]))).absent[0].reason
    recorded = gpu_nvml.find(Playback(Recording({})).machine)
    assert "not part of a recording" in recorded.absent[0].reason
