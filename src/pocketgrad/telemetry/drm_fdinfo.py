"""Busy time per engine and memory of our own process on any GPU with a DRM driver.

Not NVIDIA's proprietary driver. The GPU has to be open already when the sampler looks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.telemetry.parse import fields
from pocketgrad.trace.model import Basis, Channel, Kind

PERIOD_NS = 50 * MS
UNITS = {"": 1, "KiB": 1024, "MiB": 1024**2}
_ENGINE = re.compile(r"drm-engine-(?!capacity-)(.+)")
_MEMORY = re.compile(r"drm-(?:resident|memory)-(.+)")


def find(machine: Machine) -> Found:
    """A counter per engine and a gauge per region of memory, over all clients of a driver."""
    search = Search("drm_fdinfo")
    folder = f"/proc/{machine.process}/fdinfo"
    first = _read(machine, folder)
    if not first:
        return search.found(f"no file in {folder} is a GPU's; open the device before sampling")
    channels = tuple(_channel(name, folder) for name in first)
    search.probe(Probe(channels, lambda: _read(machine, folder), PERIOD_NS))
    return search.found("")


def _channel(name: str, folder: str) -> Channel:
    _, driver, what, _ = name.split("/")
    busy = what == "engine"
    return Channel(
        name,
        "time" if busy else "bytes",
        Kind.CUMULATIVE if busy else Kind.GAUGE,
        f"own process on {driver}",
        f"{folder}/*",
        Basis.COUNTER,
        note="may go back for a moment" if busy else "",
    )


def _read(machine: Machine, folder: str) -> Mapping[str, float]:
    clients: dict[tuple[str, str], dict[str, str]] = {}
    for file in machine.names(folder, r"\d+"):
        try:
            about = dict(fields(machine.text(f"{folder}/{file}")))
        except UnreadableError:
            continue  # closed in between
        if "drm-driver" in about:  # a duplicated descriptor is the same client: counted once
            clients[about["drm-driver"], about.get("drm-client-id", file)] = about
    found: dict[str, float] = {}
    for (driver, _), about in clients.items():
        for key, value in about.items():
            name = _name(driver, key)
            if name:
                found[name] = found.get(name, 0.0) + _amount(value)
    return found


def _name(driver: str, key: str) -> str:
    if match := _ENGINE.fullmatch(key):
        return f"drm_fdinfo/{driver}/engine/{match[1]}"
    if match := _MEMORY.fullmatch(key):
        return f"drm_fdinfo/{driver}/memory/{match[1]}"
    return ""


def _amount(text: str) -> float:
    amount, _, unit = text.partition(" ")
    try:
        return float(amount) * UNITS.get(unit, 1)
    except ValueError:
        raise UnreadableError(f"a DRM driver states '{text[:40]}'") from None
