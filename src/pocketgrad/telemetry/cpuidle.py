"""Time that cores spent in idle states, in microseconds: resolves single operations.

A state's time grows when the idle period ends, so a core that sleeps on shows no progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgrad.telemetry.api import MS, Found, Probe, Search, distinct
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import scaled
from pocketgrad.trace.model import Basis, Channel, Kind

ROOT = "/sys/devices/system/cpu"
PERIOD_NS = 50 * MS  # cores × states are many files
NOTE = "grows when an idle period ends"
_ns = scaled(1e3)


def find(machine: Machine) -> Found:
    """Per core: a counter per idle state, by the state's name, and their sum."""
    search = Search("cpuidle")
    for core in machine.names(ROOT, r"cpu\d+"):
        folder = f"{ROOT}/{core}/cpuidle"
        states = machine.names(folder, r"state\d+")
        labels = [(machine.get(f"{folder}/{s}/name") or s, s) for s in states]
        files = {
            f"cpuidle/{core}/{label}": f"{folder}/{state}/time"
            for label, state in zip(distinct(labels), states, strict=True)
        }
        if files:
            search.probe(_probe(machine, core, files))
    return search.found(f"no core has {ROOT}/cpuN/cpuidle: a virtual machine, or cpuidle.off=1")


def _probe(machine: Machine, core: str, files: Mapping[str, str]) -> Probe:
    idle = f"cpuidle/{core}/idle"
    sources: Sequence[tuple[str, str, str]] = [
        (idle, f"{ROOT}/{core}/cpuidle/*/time", ""),
        *((name, path, idle) for name, path in files.items()),
    ]

    def read() -> Mapping[str, float]:
        times = {name: machine.value(path, _ns) for name, path in files.items()}
        return {idle: sum(times.values()), **times}

    channels = tuple(
        Channel(
            name,
            "time",
            Kind.CUMULATIVE,
            f"core {core}",
            source,
            Basis.COUNTER,
            within=within,
            note=NOTE,
        )
        for name, source, within in sources
    )
    return Probe(channels, read, PERIOD_NS)
