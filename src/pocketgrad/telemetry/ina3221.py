"""Power rails of Jetson boards (INA3221), both drivers: IIO of JetPack 4, hwmon of JetPack 5 on.

With hwmon every read waits for a conversion of up to 6.6 ms, so each chip has its own lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pocketgrad.telemetry.api import MS, Found, Probe, Search, distinct
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import number
from pocketgrad.trace.model import Channel, Kind

IIO = "/sys/bus/i2c/drivers/ina3221x"
HWMON = "/sys/bus/i2c/drivers/ina3221"
CHIP = r"\d+-[0-9a-f]{4}"
IIO_PERIOD_NS, HWMON_PERIOD_NS = 10 * MS, 20 * MS

TOTAL = ("VDD_IN", "POM_5V_IN")  # a rail that feeds the module
# Boards without such a rail: the total is the sum of these.
SUMS = (
    frozenset({"VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"}),  # AGX Orin
    frozenset({"GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"}),  # AGX Xavier
)
INSIDE = {"VDDQ_VDD2_1V8AO": "VIN_SYS_5V0"}  # AGX Orin: memory hangs on the 5 V rail
BESIDE = ("VDD_MUX",)  # on the carrier, in parallel with VDD_IN


@dataclass(frozen=True, slots=True)
class Rail:
    """A channel of a chip, and how its power is read."""

    label: str
    chip: str
    source: str
    watt: Callable[[], float]
    iio: bool


def find(machine: Machine) -> Found:
    """A power channel per rail; those that make the total are marked whole, others lie within."""
    search = Search("ina3221")
    rails = [*_iio(machine), *_hwmon(machine)]
    labels = {rail.label for rail in rails}
    whole = _whole(labels)
    for rail, name in zip(rails, distinct([(r.label, r.chip) for r in rails]), strict=True):
        within = ""
        if rail.label not in whole and rail.label not in BESIDE:
            within = INSIDE.get(rail.label, "") or next((t for t in TOTAL if t in labels), "")
        channel = Channel(
            f"ina3221/{name}",
            "power",
            Kind.GAUGE if rail.iio else Kind.AVERAGE,
            f"rail {rail.label}",
            rail.source,
            within=f"ina3221/{within}" if within else "",
            whole=rail.label in whole,
        )
        search.probe(_probe(channel, rail))
    return search.found(f"no chip under {IIO} (JetPack 4) or {HWMON} (JetPack 5 and later)")


def _whole(labels: set[str]) -> frozenset[str]:
    total = next((t for t in TOTAL if t in labels), "")
    if total:
        return frozenset({total})
    return next((rails for rails in SUMS if rails <= labels), frozenset())


def _probe(channel: Channel, rail: Rail) -> Probe:
    def read() -> Mapping[str, float]:
        return {channel.name: rail.watt()}

    period = IIO_PERIOD_NS if rail.iio else HWMON_PERIOD_NS
    return Probe((channel,), read, period, "" if rail.iio else f"ina3221 {rail.chip}")


def _iio(machine: Machine) -> list[Rail]:
    rails = []
    for chip in machine.names(IIO, CHIP):
        for device in machine.names(f"{IIO}/{chip}", r"iio:device\d+|iio_device"):
            folder = f"{IIO}/{chip}/{device}"
            for k in range(3):
                label = machine.get(f"{folder}/rail_name_{k}")
                if label and label != "NC":
                    path = f"{folder}/in_power{k}_input"
                    rails.append(Rail(label, chip, path, _milliwatt(machine, path), iio=True))
    return rails


def _hwmon(machine: Machine) -> list[Rail]:
    rails = []
    for chip in machine.names(HWMON, CHIP):
        for device in machine.names(f"{HWMON}/{chip}/hwmon", r"hwmon\d+"):
            folder = f"{HWMON}/{chip}/hwmon/{device}"
            for k in range(1, 4):  # 4 is the sum of currents, in4 to in7 are shunts
                label = machine.get(f"{folder}/in{k}_label")
                if label and label != "NC":
                    volt, ampere = f"{folder}/in{k}_input", f"{folder}/curr{k}_input"
                    product = _product(machine, volt, ampere)
                    rails.append(Rail(label, chip, f"{ampere} × {volt}", product, iio=False))
    return rails


def _milliwatt(machine: Machine, path: str) -> Callable[[], float]:
    return lambda: machine.value(path, number) / 1e3


def _product(machine: Machine, millivolt: str, milliampere: str) -> Callable[[], float]:
    return lambda: machine.value(milliampere, number) * machine.value(millivolt, number) / 1e6
