"""Frequency of each cluster of cores, and the limit that thermal control may have lowered."""

from __future__ import annotations

from pocketgrad.telemetry.api import MS, Found, Search
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import scaled
from pocketgrad.trace.model import Basis, Channel, Kind

ROOT = "/sys/devices/system/cpu/cpufreq"
FILES = (  # file, name, basis, period, note
    ("scaling_cur_freq", "frequency", Basis.REQUESTED, 20, "ARM drivers state what they asked for"),
    ("scaling_max_freq", "limit", Basis.REQUESTED, 500, "below cpuinfo_max_freq: throttled"),
)
_hz = scaled(1e3)


def find(machine: Machine) -> Found:
    """Two gauges per policy; its scope lists the cores that share the clock."""
    search = Search("cpufreq")
    for policy in machine.names(ROOT, r"policy\d+"):
        folder = f"{ROOT}/{policy}"
        cores = machine.get(f"{folder}/related_cpus") or policy.removeprefix("policy")
        for file, name, basis, period_ms, note in FILES:
            channel = Channel(
                f"cpufreq/{policy}/{name}",
                "frequency",
                Kind.GAUGE,
                f"cores {cores}",
                f"{folder}/{file}",
                basis,
                note=note,
            )
            search.file(machine, channel, _hz, period_ms * MS)
    return search.found(machine.why_empty(ROOT))
