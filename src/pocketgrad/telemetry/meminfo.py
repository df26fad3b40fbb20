"""Memory of the whole system from /proc/meminfo."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.telemetry.parse import fields, number
from pocketgrad.trace.model import Basis, Channel, Kind

PATH = "/proc/meminfo"
KEYS = {  # the kernel's word: what it means
    "MemAvailable": "could be had without swapping",
    "MemFree": "unused, without what could be reclaimed",
    "CmaFree": "for buffers of the GPU on small boards",
    "SwapFree": "",
}
PERIOD_NS = 250 * MS


def find(machine: Machine) -> Found:
    """A gauge per key that this kernel has."""
    search = Search("meminfo")
    try:
        first = _read(machine)
    except UnreadableError as error:
        search.missing(search.sampler, str(error))
        return search.found("")
    channels = tuple(
        Channel(
            f"meminfo/{key}", "bytes", Kind.GAUGE, "system", PATH, Basis.COUNTER, note=KEYS[key]
        )
        for key in KEYS
        if f"meminfo/{key}" in first
    )
    if not channels:
        search.missing(search.sampler, f"{PATH} has none of {', '.join(KEYS)}")
        return search.found("")
    search.probe(Probe(channels, lambda: _read(machine), PERIOD_NS))
    return search.found("")


def _read(machine: Machine) -> Mapping[str, float]:
    found = {}
    for key, value in fields(machine.text(PATH, keep=True)):
        if key in KEYS:
            try:
                found[f"meminfo/{key}"] = number(value) * 1024
            except ValueError:
                continue  # left out: the poller notes that it was not readable
    return found
