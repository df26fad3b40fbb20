"""Temperature, power, energy and fans of hardware monitors, by chip and label.

The rails of INA3221 and the chips of GPUs that have a sampler of their own are left to those.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Search, distinct
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import scaled
from pocketgrad.telemetry.pci import bus_address
from pocketgrad.trace.model import Basis, Channel, Kind

ROOT = "/sys/class/hwmon"
ELSEWHERE = {"ina3221", "amdgpu"}
INPUTS: Mapping[str, tuple[str, Kind, float, int]] = {  # file: quantity, kind, factor, period
    r"temp\d+_input": ("temperature", Kind.GAUGE, 1e-3, 250),
    r"power\d+_input": ("power", Kind.GAUGE, 1e-6, 20),
    r"power\d+_average": ("power", Kind.AVERAGE, 1e-6, 50),
    r"energy\d+_input": ("energy", Kind.CUMULATIVE, 1e-6, 20),
    r"fan\d+_input": ("speed", Kind.GAUGE, 1.0, 1000),
}


def find(machine: Machine) -> Found:
    """All inputs of all chips that are known by a name."""
    search = Search("hwmon")
    places = machine.names(ROOT, r"hwmon\d+")
    labels = [
        (machine.get(f"{ROOT}/{place}/name") or "unnamed", bus_address(machine, f"{ROOT}/{place}"))
        for place in places
    ]
    for place, chip, (kind, _) in zip(places, distinct(labels), labels, strict=True):
        if kind not in ELSEWHERE:
            _chip(machine, search, f"{ROOT}/{place}", chip)
    return search.found(machine.why_empty(ROOT))


def _chip(machine: Machine, search: Search, folder: str, chip: str) -> None:
    for pattern, (quantity, kind, factor, period_ms) in INPUTS.items():
        files = machine.names(folder, pattern)
        stems = [file.rsplit("_", 1)[0] for file in files]
        labels = [(machine.get(f"{folder}/{s}_label") or s, s) for s in stems]
        for file, label in zip(files, distinct(labels), strict=True):
            basis = Basis.COUNTER if kind is Kind.CUMULATIVE else Basis.MEASURED
            channel = Channel(
                f"hwmon/{chip}/{label}/{quantity}",
                quantity,
                kind,
                f"chip {chip}",
                f"{folder}/{file}",
                basis,
            )
            search.file(machine, channel, scaled(factor), period_ms * MS)
