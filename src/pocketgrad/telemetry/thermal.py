"""Temperatures of thermal zones and states of cooling devices, by the names the device gives them.

A cooling state above 0 is evidence of throttling. Trip points are constants and not sampled.
"""

from __future__ import annotations

from pocketgrad.telemetry.api import MS, Found, Search, distinct
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.telemetry.parse import number
from pocketgrad.trace.model import Basis, Channel, Kind

ROOT = "/sys/class/thermal"
PERIOD_NS = 250 * MS
DUMMIES = ("PMIC-Die", "PMIC")  # on Jetson TX2 a constant


def find(machine: Machine) -> Found:
    """A gauge per zone and per cooling device."""
    search = Search("thermal")
    for place, name in _named(machine, "thermal_zone"):
        note = "a constant on some boards, not a sensor" if name in DUMMIES else ""
        channel = Channel(
            f"thermal/{name}",
            "temperature",
            Kind.GAUGE,
            f"zone {name}",
            f"{ROOT}/{place}/temp",
            note=note,
        )
        search.file(machine, channel, celsius, PERIOD_NS)
    for place, name in _named(machine, "cooling_device"):
        source = f"{ROOT}/{place}/cur_state"
        scope = f"cooling {name}"
        channel = Channel(
            f"cooling/{name}",
            "state",
            Kind.GAUGE,
            scope,
            source,
            Basis.COUNTER,
            note="0: no cooling",
        )
        search.file(machine, channel, number, PERIOD_NS)
    return search.found(machine.why_empty(ROOT))


def _named(machine: Machine, prefix: str) -> list[tuple[str, str]]:
    places = machine.names(ROOT, rf"{prefix}\d+")
    labels = [(machine.get(f"{ROOT}/{place}/type") or "unnamed", place) for place in places]
    return list(zip(places, distinct(labels), strict=True))


def celsius(text: str) -> float:
    """A zone's value: thousandths of a degree, or on old kernels tenths or whole degrees.

    What lies outside of every range is a sensor that is off, which is not a temperature.
    """
    raw = number(text)
    if raw <= -20_000 or raw in {0, -256}:
        raise UnreadableError(f"the sensor is off: it states {raw:g}", lasting=False)
    if 1000 <= abs(raw) <= 150_000:
        return raw / 1000
    if 200 <= raw < 1000:
        return raw / 10
    if 0 < raw <= 125:
        return raw
    raise ValueError(text)
