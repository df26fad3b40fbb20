"""What our control group uses and how long it was throttled: version 2, hybrid, or version 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.telemetry.parse import fields, number, scaled
from pocketgrad.trace.model import Basis, Channel, Kind

MOUNT = "/sys/fs/cgroup"
CPU_PERIOD_NS, MEMORY_PERIOD_NS = 50 * MS, 250 * MS
STAT = {  # key of cpu.stat: name, note
    "usage_usec": ("cpu_time", ""),
    "throttled_usec": ("throttled", "more than 0 makes a benchmark void"),
}
V1 = (  # controller, file, name, quantity, kind, factor
    ("cpuacct", "cpuacct.usage", "cpu_time", "time", Kind.CUMULATIVE, 1.0),
    ("memory", "memory.usage_in_bytes", "memory", "bytes", Kind.GAUGE, 1.0),
    ("memory", "memory.max_usage_in_bytes", "memory_peak", "bytes", Kind.GAUGE, 1.0),
)


def find(machine: Machine) -> Found:
    """The first of version 2, hybrid and version 1 that has files."""
    search = Search("cgroup")
    try:
        groups = _groups(machine)
    except UnreadableError as error:
        search.missing(search.sampler, str(error))
        return search.found("")
    for folder in _candidates(groups.get("", ""), MOUNT, f"{MOUNT}/unified"):
        if machine.get(f"{folder}/cpu.stat") and machine.get(f"{folder}/memory.current"):
            _version_2(machine, search, folder)
            return search.found("")
    for controller, file, name, quantity, kind, factor in V1:
        places = _candidates(groups.get(controller, ""), f"{MOUNT}/{controller}")
        path = next((f"{p}/{file}" for p in places if machine.get(f"{p}/{file}")), "")
        if path:
            channel = _channel(name, quantity, kind, path)
            period = CPU_PERIOD_NS if quantity == "time" else MEMORY_PERIOD_NS
            search.file(machine, channel, scaled(factor), period)
    return search.found(f"no file of our control group is under {MOUNT}")


def _groups(machine: Machine) -> Mapping[str, str]:
    """The path of our group for each controller; '' is version 2."""
    found = {}
    for line in machine.text(f"/proc/{machine.process}/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for controller in controllers.removeprefix("name=").split(","):
            found[controller] = path.rstrip("/")
    return found


def _candidates(path: str, *mounts: str) -> Iterator[str]:
    """A container may see its own group as the root of the mount."""
    for mount in mounts:
        yield f"{mount}{path}"
        if path:
            yield mount


def _channel(name: str, quantity: str, kind: Kind, source: str, note: str = "") -> Channel:
    return Channel(f"cgroup/{name}", quantity, kind, "cgroup", source, Basis.COUNTER, note=note)


def _version_2(machine: Machine, search: Search, folder: str) -> None:
    path = f"{folder}/cpu.stat"

    def parse(text: str) -> Mapping[str, float]:
        return {
            f"cgroup/{STAT[key][0]}": int(value) * 1e3
            for key, value in fields(text, " ")
            if key in STAT
        }

    first = parse(machine.get(path) or "")
    channels = tuple(
        _channel(name, "time", Kind.CUMULATIVE, path, note)
        for name, note in STAT.values()
        if f"cgroup/{name}" in first
    )
    if channels:
        search.probe(Probe(channels, lambda: machine.value(path, parse), CPU_PERIOD_NS))
    for file, name in (("memory.current", "memory"), ("memory.peak", "memory_peak")):
        channel = _channel(name, "bytes", Kind.GAUGE, f"{folder}/{file}")
        search.file(machine, channel, number, MEMORY_PERIOD_NS)
