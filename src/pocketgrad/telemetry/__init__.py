"""Samplers of the device's own sensors, and the thread that reads them beside a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.telemetry import meminfo, proc_stat, process
from pocketgrad.telemetry.api import Found, Sampler
from pocketgrad.telemetry.machine import Machine

ALL: Mapping[str, Sampler] = {
    "meminfo": meminfo.find,
    "proc_stat": proc_stat.find,
    "process": process.find,
}


def find(machine: Machine, samplers: Iterable[str] | None = None) -> Found:
    """All that the named samplers (by default every one) can read on a machine, and cannot."""
    chosen = list(ALL if samplers is None else samplers)
    for name in chosen:
        if name not in ALL:
            raise UnknownNameError("sampler", name, ALL)
    results = [ALL[name](machine) for name in chosen]
    return Found(
        tuple(probe for found in results for probe in found.probes),
        tuple(absent for found in results for absent in found.absent),
    )
