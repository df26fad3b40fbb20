"""NVIDIA cards through NVML (extra `nvml`): the energy counter, and what is cheap to ask beside it.

Asking an H200 for its energy takes 5 ms of processor time and for its power 20 µs; both are new
every 100 ms. So the counter is asked rarely, and at both ends of a run; in between stands power.
Where NVML answers, `gpu_nvidia` leaves the cards to it. It is absent on Jetson before Thor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pocketgrad.telemetry.api import MS, Found, Probe, Search, distinct
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.trace.model import Basis, Channel, Kind

# The library, and a card's handle of it, have no types: hence Any.
Ask = Callable[[Any, Any], float]
Row = tuple[str, str, Kind, Basis, Ask, int]
SM, CORE = 1, 0  # NVML_CLOCK_SM, NVML_TEMPERATURE_GPU

ASKED: tuple[Row, ...] = (  # name, quantity, kind, basis, question, period in ms
    (
        "energy",
        "energy",
        Kind.CUMULATIVE,
        Basis.COUNTER,
        lambda nvml, card: nvml.nvmlDeviceGetTotalEnergyConsumption(card) * 1e-3,
        2000,
    ),
    (
        "power",
        "power",
        Kind.AVERAGE,  # over 1 s from Ampere on
        Basis.MEASURED,
        lambda nvml, card: nvml.nvmlDeviceGetPowerUsage(card) * 1e-3,
        50,
    ),
    (
        "utilisation",
        "share",
        Kind.AVERAGE,  # over 1/6 to 1 s
        Basis.COUNTER,
        lambda nvml, card: float(nvml.nvmlDeviceGetUtilizationRates(card).gpu),
        50,
    ),
    (
        "memory",
        "bytes",
        Kind.GAUGE,
        Basis.COUNTER,
        lambda nvml, card: float(nvml.nvmlDeviceGetMemoryInfo(card).used),
        100,
    ),
    (
        "frequency",
        "frequency",
        Kind.GAUGE,
        Basis.MEASURED,
        lambda nvml, card: nvml.nvmlDeviceGetClockInfo(card, SM) * 1e6,
        50,
    ),
    (
        "temperature",
        "temperature",
        Kind.GAUGE,
        Basis.MEASURED,
        lambda nvml, card: float(nvml.nvmlDeviceGetTemperature(card, CORE)),
        250,
    ),
)


def find(machine: Machine) -> Found:
    """A probe per card and question, less those that the card does not answer."""
    search = Search("gpu_nvml")
    try:
        nvml = machine.nvml()
        cards = _cards(nvml)
    except UnreadableError as error:
        search.missing(search.sampler, str(error))
        return search.found("")
    for label, card in cards.items():
        for name, quantity, kind, basis, ask, period_ms in ASKED:
            channel = Channel(
                f"gpu_nvml/{label}/{name}", quantity, kind, f"gpu {label}", "NVML", basis
            )
            read = _reader(nvml, card, channel.name, ask)
            search.probe(Probe((channel,), read, period_ms * MS, "nvml"))
    return search.found("NVML knows of no card")


def _cards(nvml: Any) -> Mapping[str, Any]:
    """Handles by the name of the card, with its place on the bus where two share one."""
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        labels = [
            (_text(nvml.nvmlDeviceGetName(h)), _text(nvml.nvmlDeviceGetPciInfo(h).busId))
            for h in handles
        ]
    except nvml.NVMLError as error:
        raise UnreadableError(f"NVML: {error}") from None
    return dict(zip(distinct(labels), handles, strict=True))


def _text(answer: str | bytes) -> str:
    """Old versions of the library answer in bytes."""
    text = answer.decode() if isinstance(answer, bytes) else answer
    return text.replace("/", "-")


def _reader(nvml: Any, card: Any, name: str, ask: Ask) -> Callable[[], Mapping[str, float]]:
    def read() -> Mapping[str, float]:
        try:
            return {name: float(ask(nvml, card))}
        except nvml.NVMLError as error:
            raise UnreadableError(f"NVML: {error}") from None

    return read
