"""The Raspberry Pi's firmware through vcgencmd: rails of the Pi 5, clocks, under-voltage.

Each call takes 10 to 30 ms, so it has a lane of its own. The sum of rails is below wall power.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.trace.model import Basis, Channel, Kind

LANE = "vcgencmd"
ADC = ("vcgencmd", "pmic_read_adc")
CLOCKS = ("arm", "core", "v3d")
_VALUE = re.compile(r"\s*(\w+)_([AV]) (?:current|volt)\(\d+\)=(-?\d+(?:\.\d+)?)[AV]\s*")
SUM = "raspberry_pi/rails"
FLAGS = {0: "under_voltage", 1: "frequency_capped", 2: "throttled", 3: "soft_temperature_limit"}


def find(machine: Machine) -> Found:
    """What vcgencmd answers; nothing where it is not installed."""
    search = Search("raspberry_pi")
    try:
        machine.run(("vcgencmd", "version"))
    except UnreadableError as error:
        search.missing(search.sampler, str(error))
        return search.found("")
    _rails(machine, search)
    for clock in CLOCKS:
        command = ("vcgencmd", "measure_clock", clock)
        _answer(machine, search, f"clock_{clock}", "frequency", command)
    _flags(machine, search)
    return search.found("")


def rails(text: str) -> Mapping[str, float]:
    """Watts per rail, current and voltage paired by the rail's name; some have no current."""
    values: dict[str, dict[str, float]] = {"A": {}, "V": {}}
    for line in text.splitlines():
        match = _VALUE.fullmatch(line)
        if match:
            values[match[2]][match[1]] = float(match[3])
    return {rail: values["V"][rail] * a for rail, a in values["A"].items() if rail in values["V"]}


def _rails(machine: Machine, search: Search) -> None:
    source = " ".join(ADC)

    def read() -> Mapping[str, float]:
        watts = rails(machine.run(ADC))
        if not watts:
            raise UnreadableError(f"{source} lists no rail; only the Pi 5 measures current")
        return {SUM: sum(watts.values())} | {f"{SUM}/{rail}": w for rail, w in watts.items()}

    try:
        names = [name for name in read() if name != SUM]
    except UnreadableError as error:
        search.missing(SUM, str(error))
        return
    note = "sum of the rails of the PMIC, below wall power"
    total = Channel(SUM, "power", Kind.GAUGE, "board", source, whole=True, note=note)
    parts = (
        Channel(name, "power", Kind.GAUGE, f"rail {name.rsplit('/', 1)[-1]}", source, within=SUM)
        for name in names
    )
    search.probe(Probe((total, *parts), read, 100 * MS, LANE))


def _answer(
    machine: Machine, search: Search, name: str, quantity: str, command: tuple[str, ...]
) -> None:
    """A command that answers 'what(0)=number'."""
    source = " ".join(command)
    channel = Channel(f"raspberry_pi/{name}", quantity, Kind.GAUGE, name, source)

    def read() -> Mapping[str, float]:
        answer = machine.run(command).strip()
        match = re.fullmatch(r"[\w()]+=(\d+(?:\.\d+)?)", answer)
        if not match:
            raise UnreadableError(f"{source} answered '{answer[:40]}'")
        return {channel.name: float(match[1])}

    search.probe(Probe((channel,), read, 500 * MS, LANE))


def _flags(machine: Machine, search: Search) -> None:
    command = ("vcgencmd", "get_throttled")
    source = " ".join(command)
    channels = tuple(
        Channel(f"raspberry_pi/{flag}", "state", Kind.GAUGE, "board", source, Basis.COUNTER)
        for flag in FLAGS.values()
    )

    def read() -> Mapping[str, float]:
        answer = machine.run(command).strip()
        if not re.fullmatch(r"throttled=0x[0-9a-fA-F]{1,8}", answer):
            raise UnreadableError(f"{source} answered '{answer[:40]}'")
        bits = int(answer.removeprefix("throttled="), 16)
        return {f"raspberry_pi/{flag}": float(bits >> bit & 1) for bit, flag in FLAGS.items()}

    search.probe(Probe(channels, read, 500 * MS, LANE))
