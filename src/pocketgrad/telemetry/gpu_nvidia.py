"""NVIDIA cards through nvidia-smi: utilisation, memory, power, clock, temperature.

A call takes tens of milliseconds, so it has a lane of its own. From Ampere on the power is an
average over 1 s: whole runs only.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.telemetry import gpu_nvml
from pocketgrad.telemetry.api import MS, Found, Probe, Search, distinct
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.telemetry.parse import number
from pocketgrad.trace.model import Basis, Channel, Kind

# field of nvidia-smi: name, quantity, kind, factor
FIELDS: Mapping[str, tuple[str, str, Kind, float]] = {
    "utilization.gpu": ("utilisation", "share", Kind.AVERAGE, 1.0),
    "utilization.memory": ("memory_utilisation", "share", Kind.AVERAGE, 1.0),
    "memory.used": ("memory", "bytes", Kind.GAUGE, 1024.0 * 1024.0),
    "clocks.sm": ("frequency", "frequency", Kind.GAUGE, 1e6),
    "power.draw": ("power", "power", Kind.AVERAGE, 1.0),
    "temperature.gpu": ("temperature", "temperature", Kind.GAUGE, 1.0),
}
COMMAND = (
    "nvidia-smi",
    f"--query-gpu=pci.bus_id,name,{','.join(FIELDS)}",
    "--format=csv,noheader,nounits",
)
SOURCE = "nvidia-smi --query-gpu"
PERIOD_NS = 200 * MS


def find(machine: Machine) -> Found:
    """Six channels per card, less those that the card does not support."""
    search = Search("gpu_nvidia")
    if gpu_nvml.find(machine).probes:
        return search.found("NVML answers for the cards, and costs less to ask")
    try:
        first = _read(machine)
    except UnreadableError as error:
        search.missing(search.sampler, str(error))
        return search.found("")
    channels = []
    for name, value in first.items():
        field = next(f for f in FIELDS.values() if f[0] == name.rsplit("/", 1)[-1])
        if isinstance(value, str):
            search.missing(name, f"{SOURCE} answers '{value}'")
            continue
        card = name.split("/")[1]
        channels.append(Channel(name, field[1], field[2], f"gpu {card}", SOURCE, Basis.MEASURED))

    def read() -> Mapping[str, float]:
        return {name: v for name, v in _read(machine).items() if not isinstance(v, str)}

    if channels:
        search.probe(Probe(tuple(channels), read, PERIOD_NS, "nvidia-smi"))
    return search.found("")


def _read(machine: Machine) -> Mapping[str, float | str]:
    """A value per card and field; text where the card answers '[N/A]'."""
    rows = [line.split(", ") for line in machine.run(COMMAND).strip().splitlines()]
    if not rows or any(len(row) != len(FIELDS) + 2 for row in rows):
        raise UnreadableError(f"{SOURCE} answered {rows[:1]}, not {len(FIELDS) + 2} fields")
    labels = distinct([(row[1].replace("/", "-"), row[0]) for row in rows])
    found: dict[str, float | str] = {}
    for label, row in zip(labels, rows, strict=True):
        for (name, _, _, factor), text in zip(FIELDS.values(), row[2:], strict=True):
            try:
                found[f"gpu_nvidia/{label}/{name}"] = number(text) * factor
            except ValueError:
                found[f"gpu_nvidia/{label}/{name}"] = text
    return found
