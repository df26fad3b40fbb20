"""Energy per rail of Pixel phones (ODPM) from the meter's own counters; needs root.

Not through Perfetto's android.power, which reads the same meter and needs no root.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search, distinct
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.trace.model import Basis, Channel, Kind

ROOT = "/sys/bus/iio/devices"
PERIOD_NS = 100 * MS
_LINE = re.compile(r"CH\d+\(T=\d+\)\[(\w+)\],\s*(\d+)")


def find(machine: Machine) -> Found:
    """A counter per rail of each meter."""
    search = Search("odpm")
    meters = [
        place
        for place in machine.names(ROOT, r"iio:device\d+")
        if "energy_value" in machine.names(f"{ROOT}/{place}")
    ]
    labels = [(machine.get(f"{ROOT}/{place}/name") or "meter", place) for place in meters]
    for place, meter in zip(meters, distinct(labels), strict=True):
        _meter(machine, search, f"{ROOT}/{place}/energy_value", meter)
    return search.found(f"no device under {ROOT} has energy_value")


def joules(text: str) -> Mapping[str, float]:
    """Rail: energy, from lines such as 'CH0(T=349350)[S10M_VDD_TPU], 5578756' in µWs."""
    found = {match[1]: int(match[2]) * 1e-6 for match in _LINE.finditer(text)}
    if not found:
        raise ValueError(text)
    return found


def _meter(machine: Machine, search: Search, path: str, meter: str) -> None:
    def read() -> Mapping[str, float]:
        values = machine.value(path, joules)
        return {f"odpm/{meter}/{rail}": joule for rail, joule in values.items()}

    try:
        names = list(read())
    except UnreadableError as error:
        search.missing(f"odpm/{meter}", str(error))
        return
    channels = tuple(
        Channel(
            name,
            "energy",
            Kind.CUMULATIVE,
            f"rail {name.rsplit('/', 1)[-1]}",
            path,
            Basis.COUNTER,
        )
        for name in names
    )
    search.probe(Probe(channels, read, PERIOD_NS))
