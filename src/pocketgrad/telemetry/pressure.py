"""Time in which work stood still for want of CPU, memory or input and output (PSI)."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine
from pocketgrad.trace.model import Basis, Channel, Kind

ROOT = "/proc/pressure"
RESOURCES = ("cpu", "io", "memory")
PERIOD_NS = 500 * MS  # the kernel adds it up every 2 s or when a state changes


def find(machine: Machine) -> Found:
    """'some' (a task waited) and 'full' (all did) per resource; 'full' means nothing for cpu."""
    search = Search("pressure")
    for resource in RESOURCES:
        path = f"{ROOT}/{resource}"
        kinds = ("some",) if resource == "cpu" else ("some", "full")
        names = {kind: f"pressure/{resource}/{kind}" for kind in kinds}
        search.probe(_probe(machine, path, names))
    return search.found("")


def _probe(machine: Machine, path: str, names: Mapping[str, str]) -> Probe:
    def parse(text: str) -> Mapping[str, float]:
        found = {}
        for line in text.splitlines():
            kind, *items = line.split()
            if kind in names:
                totals = [item for item in items if item.startswith("total=")]
                found[names[kind]] = int(totals[0].removeprefix("total=")) * 1e3
        return found

    channels = tuple(
        Channel(name, "time", Kind.CUMULATIVE, "system", path, Basis.COUNTER)
        for name in names.values()
    )
    return Probe(channels, lambda: machine.value(path, parse), PERIOD_NS)
