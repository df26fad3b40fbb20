"""Qualcomm Adreno through the vendor's driver (KGSL): utilisation, clock, temperature.

The driver closes its accounting window after more than 1 s, so utilisation is new once a second.
"""

from __future__ import annotations

from pocketgrad.telemetry.api import MS, Found, Search
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import number, scaled
from pocketgrad.trace.model import Basis, Channel, Kind

ROOT = "/sys/class/kgsl/kgsl-3d0"


def find(machine: Machine) -> Found:
    """Three channels of the one GPU."""
    search = Search("gpu_adreno")
    if not machine.names(ROOT):
        return search.found(machine.why_empty(ROOT))
    model = machine.get(f"{ROOT}/gpu_model") or "Adreno"

    def channel(name: str, quantity: str, kind: Kind, file: str, basis: Basis) -> Channel:
        return Channel(
            f"gpu_adreno/{name}", quantity, kind, f"gpu {model}", f"{ROOT}/{file}", basis
        )

    busy = channel("utilisation", "share", Kind.AVERAGE, "gpubusy", Basis.COUNTER)
    search.file(machine, busy, busy_share, 200 * MS)
    clock = channel("frequency", "frequency", Kind.GAUGE, "gpuclk", Basis.REQUESTED)
    search.file(machine, clock, number, 20 * MS)
    heat = channel("temperature", "temperature", Kind.GAUGE, "temp", Basis.MEASURED)
    search.file(machine, heat, scaled(1e-3), 250 * MS)
    return search.found("")


def busy_share(text: str) -> float:
    """'  372644 1002210' is busy and total time in µs; '0 0' is a GPU that was off."""
    busy, total = map(int, text.split())
    if not 0 <= busy <= total:
        raise ValueError(text)
    return 100 * busy / total if total else 0.0
