"""Broadcom V3D of Raspberry Pi 4 and 5: busy time per queue; computing runs on 'csd'."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.trace.model import Basis, Channel, Kind

PLACES = (  # Pi 5, Pi 4
    "/sys/devices/platform/axi/1002000000.v3d/gpu_stats",
    "/sys/devices/platform/v3dbus/fec00000.v3d/gpu_stats",
)
PERIOD_NS = 20 * MS  # one read prints all queues


def find(machine: Machine) -> Found:
    """A counter per queue."""
    search = Search("gpu_v3d")
    path = next(
        (p for p in PLACES if p.rsplit("/", 1)[1] in machine.names(p.rsplit("/", 1)[0])), ""
    )
    if not path:
        return search.found(f"neither {PLACES[0]} nor {PLACES[1]} exists")

    def read() -> Mapping[str, float]:
        return machine.value(path, runtimes)

    try:
        names = list(read())
    except UnreadableError as error:
        search.missing(search.sampler, str(error))
        return search.found("")
    channels = tuple(
        Channel(name, "time", Kind.CUMULATIVE, f"gpu queue {name[8:]}", path, Basis.COUNTER)
        for name in names
    )
    search.probe(Probe(channels, read, PERIOD_NS))
    return search.found("")


def runtimes(text: str) -> Mapping[str, float]:
    """Nanoseconds each queue ran, from lines of queue, timestamp, jobs, runtime."""
    lines = text.splitlines()
    header = lines[0].split()
    queue, runtime = header.index("queue"), header.index("runtime")
    rows = [line.split() for line in lines[1:]]
    return {f"gpu_v3d/{row[queue]}": float(row[runtime]) for row in rows if row}
