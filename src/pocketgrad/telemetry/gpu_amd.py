"""AMD GPUs (driver amdgpu): utilisation, memory, power, clock, temperature.

Utilisation is an average of the firmware's. On an APU the power contains the processor.
"""

from __future__ import annotations

from collections.abc import Callable

from pocketgrad.telemetry.api import MS, Found, Search, distinct
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import number, scaled, share
from pocketgrad.telemetry.pci import cards
from pocketgrad.trace.model import Channel, Kind

VENDOR = "0x1002"
Row = tuple[str, str, str, Kind, Callable[[str], float], int]
FILES: tuple[Row, ...] = (  # file, name, quantity, kind, parser, period in ms
    ("gpu_busy_percent", "utilisation", "share", Kind.AVERAGE, share, 20),
    ("mem_busy_percent", "memory_utilisation", "share", Kind.AVERAGE, share, 20),
    ("mem_info_vram_used", "vram", "bytes", Kind.GAUGE, number, 100),
    ("mem_info_gtt_used", "gtt", "bytes", Kind.GAUGE, number, 100),
)
MONITOR: tuple[Row, ...] = (
    ("power1_average", "power", "power", Kind.AVERAGE, scaled(1e-6), 20),
    ("power1_input", "power", "power", Kind.GAUGE, scaled(1e-6), 20),
    ("freq1_input", "frequency", "frequency", Kind.GAUGE, number, 20),
    ("temp1_input", "temperature", "temperature", Kind.GAUGE, scaled(1e-3), 250),
)


def find(machine: Machine) -> Found:
    """All files of each card that this kernel has."""
    search = Search("gpu_amd")
    found = cards(machine, VENDOR)
    labels = distinct([("amd", card.slot) for card in found])
    for card, label in zip(found, labels, strict=True):
        device = f"{card.folder}/device"
        _files(machine, search, device, label, FILES)
        for monitor in machine.names(f"{device}/hwmon", r"hwmon\d+"):
            folder = f"{device}/hwmon/{monitor}"
            present = machine.names(folder)
            average = "power1_average" in present
            rows = [row for row in MONITOR if row[0] in present]
            rows = [row for row in rows if not (average and row[0] == "power1_input")]
            _files(machine, search, folder, label, tuple(rows))
    return search.found("no card of AMD's under /sys/class/drm")


def _files(
    machine: Machine, search: Search, folder: str, label: str, rows: tuple[Row, ...]
) -> None:
    for file, name, quantity, kind, parse, period_ms in rows:
        channel = Channel(
            f"gpu_amd/{label}/{name}", quantity, kind, f"gpu {label}", f"{folder}/{file}"
        )
        search.file(machine, channel, parse, period_ms * MS)
