"""Energy counters of x86 processors (RAPL), of Intel and of AMD since Zen.

psys contains the packages, a package its cores and uncore; dram stands beside. Never add levels.
"""

from __future__ import annotations

from pocketgrad.telemetry.api import MS, Found, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.telemetry.parse import at_least, scaled
from pocketgrad.trace.model import Absent, Basis, Channel, Kind

ROOT = "/sys/class/powercap"
ZONE = r"intel-rapl(-mmio)?:\d+(:\d+)*"
PERIOD_NS = 20 * MS  # it is renewed each ms without saying when: below 50 ms errors exceed 5 %
INSIDE = ("core", "uncore")
_joule = at_least(0.0, scaled(1e-6), "a counter is never negative")
ADVICE = "readable by root alone since Linux 5.10; allow it with `sudo chmod a+r {}`"


def find(machine: Machine) -> Found:
    """A counter per zone; the same zone under -mmio is the same energy and left out."""
    search = Search("rapl")
    seen: set[str] = set()
    zones = machine.names(ROOT, ZONE)
    names = {zone: machine.get(f"{ROOT}/{zone}/name") or zone for zone in zones}
    psys = "rapl/psys" if "psys" in names.values() else ""
    for zone in sorted(zones, key=lambda z: z.startswith("intel-rapl-mmio")):
        label = names[zone]
        parent = names.get(zone.rsplit(":", 1)[0], "")
        name = f"rapl/{parent}/{label}" if parent else f"rapl/{label}"
        if name in seen:
            continue
        seen.add(name)
        within = f"rapl/{parent}" if parent and label in INSIDE else ""
        if label.startswith("package"):
            within = psys
        _zone(machine, search, f"{ROOT}/{zone}", name, within)
    found = search.found(machine.why_empty(ROOT))
    return Found(found.probes, tuple(_advised(absent) for absent in found.absent))


def _zone(machine: Machine, search: Search, folder: str, name: str, within: str) -> None:
    try:
        wraps_at = machine.value(f"{folder}/max_energy_range_uj", _joule)
    except UnreadableError:
        wraps_at = None  # the reader then takes a step back for a restart
    channel = Channel(
        name,
        "energy",
        Kind.CUMULATIVE,
        name.removeprefix("rapl/"),
        f"{folder}/energy_uj",
        Basis.COUNTER,
        wraps_at,
        within,
        whole=name == "rapl/psys",
    )
    search.file(machine, channel, _joule, PERIOD_NS)


def _advised(absent: Absent) -> Absent:
    if "permission denied" not in absent.reason:
        return absent
    path = absent.reason.rsplit(" ", 1)[-1]
    return Absent(absent.name, f"{absent.reason}; {ADVICE.format(path)}")
