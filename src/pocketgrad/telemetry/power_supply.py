"""Batteries and chargers: current, voltage, level, temperature, and the power of the device.

Vendors differ in unit and sign. The unit is judged by the size of the first value, the sign by the
status at the same moment; what was assumed stands in the channel's note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.telemetry.parse import number, scaled, share
from pocketgrad.trace.model import Basis, Channel, Kind

ROOT = "/sys/class/power_supply"
PERIOD_NS = 100 * MS  # fuel gauges average over 0.25 s to several seconds
MILLIAMPERE_BELOW = 10_000  # a device that is on draws 50 to 3000 mA
SUPPLY_CURRENTS = ("input_current_now", "current_now")


@dataclass(frozen=True, slots=True)
class Supply:
    """A battery or charger; its power is positive into a battery, out of a charger."""

    name: str
    battery: bool
    folder: str
    watt: Callable[[], float]


def find(machine: Machine) -> Found:
    """Power of each supply, level and temperature of batteries, and what is left for the device."""
    search = Search("power_supply")
    supplies: list[Supply] = []
    for name in machine.names(ROOT):
        kind = machine.get(f"{ROOT}/{name}/type") or ""
        if kind:
            _supply(machine, search, supplies, name, kind == "Battery")
    _device(machine, search, supplies)
    return search.found(machine.why_empty(ROOT))


def _supply(
    machine: Machine, search: Search, supplies: list[Supply], name: str, battery: bool
) -> None:
    folder = f"{ROOT}/{name}"
    if battery:
        for file, quantity, parse in (
            ("capacity", "share", share),
            ("temp", "temperature", scaled(0.1)),
        ):
            if machine.get(f"{folder}/{file}") is not None:
                scope = f"battery {name}"
                channel = Channel(
                    f"power_supply/{name}/{file}", quantity, Kind.GAUGE, scope, f"{folder}/{file}"
                )
                search.file(machine, channel, parse, 1000 * MS)
    try:
        watt, source, note = _power(machine, folder, battery)
    except UnreadableError as error:
        search.missing(f"power_supply/{name}/power", str(error))
        return
    supplies.append(Supply(name, battery, folder, watt))
    channel = Channel(
        f"power_supply/{name}/power",
        "power",
        Kind.AVERAGE,
        f"{'battery' if battery else 'charger'} {name}",
        source,
        note=note,
    )
    search.probe(Probe((channel,), lambda: {channel.name: watt()}, PERIOD_NS))


def _power(machine: Machine, folder: str, battery: bool) -> tuple[Callable[[], float], str, str]:
    """How the power is read, from where, and what had to be assumed."""
    sign = "positive into the battery, by its status" if battery else "positive into the device"
    power = f"{folder}/power_now"
    if machine.get(power) is not None:
        return (
            lambda: _signed(machine, folder, battery, machine.value(power, number) * 1e-6),
            power,
            sign,
        )
    current = next(
        (f"{folder}/{f}" for f in SUPPLY_CURRENTS if machine.get(f"{folder}/{f}") is not None),
        f"{folder}/current_now",
    )
    volt = f"{folder}/voltage_now"
    first = abs(machine.value(current, number))
    machine.value(volt, number)
    unit, factor = ("mA", 1e-3) if 0 < first < MILLIAMPERE_BELOW else ("µA", 1e-6)
    note = f"{sign}; current taken for {unit}, since the first value was {first:g}"

    def watt() -> float:
        ampere = machine.value(current, number) * factor
        return _signed(machine, folder, battery, ampere * machine.value(volt, number) * 1e-6)

    return watt, f"{current} × {volt}", note


def _signed(machine: Machine, folder: str, battery: bool, watt: float) -> float:
    status = machine.get(f"{folder}/status") if battery else "Charging"
    if status == "Discharging":
        return -abs(watt)
    return abs(watt) if status == "Charging" else watt


def _device(machine: Machine, search: Search, supplies: Sequence[Supply]) -> None:
    """What comes in less what goes into the battery, before losses."""
    batteries = [s for s in supplies if s.battery]
    chargers = [s for s in supplies if not s.battery]
    if not batteries:
        return
    source = " − ".join(f"power of {s.name}" for s in [*chargers, *batteries])
    note = "charger less battery, without the losses of conversion"
    channel = Channel(
        "power_supply/device/power",
        "power",
        Kind.AVERAGE,
        "device",
        source,
        Basis.MODEL,
        whole=True,
        note=note,
    )

    def read() -> Mapping[str, float]:
        incoming = sum(s.watt() for s in chargers if machine.get(f"{s.folder}/online") != "0")
        watt = incoming - sum(s.watt() for s in batteries)
        if watt <= 0:
            raise UnreadableError(
                "the battery charges from a supply that does not tell its power", lasting=False
            )
        return {channel.name: watt}

    search.probe(Probe((channel,), read, PERIOD_NS))
