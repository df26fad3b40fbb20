"""Reads what NVIDIA's tegrastats prints, from JetPack 3 to 7. It does not start it.

Rails, temperatures and loads share names (GPU, CPU), so each has its own kind of result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pocketgrad.base.errors import DataError

_CORES = re.compile(r"\bCPU \[([^\]]*)\](?:@(\d+))?")
_ENGINE = re.compile(r"\b((?:GR3D2?|EMC|VIC|NVDLA\d|PVA\d)_FREQ) (?:(\d+)%)?(?:@(\[[\d,]+\]|\d+))?")
_MEMORY = re.compile(r"\b(RAM|SWAP|IRAM) (\d+)/(\d+)([kM])B")
_HEAT = re.compile(r"(?<!\S)([\w-]+)@(-?\d+(?:\.\d+)?)C")
_RAIL = re.compile(r"(?<!\S)([A-Z][A-Z0-9_]*) (\d+)(?:mW)?/(\d+)(?:mW)?(?:/\d+mW)?(?!\S)")
_MTS = re.compile(r"\bMTS fg (\d+)% bg (\d+)%")
OFFLINE_C = -256.0
NO_RAIL = "NC"


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what it states and nothing else; a core that is off is not in ``core_share``."""

    memory_nbytes: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # used, total
    core_share: Mapping[int, float] = field(default_factory=dict)  # percent
    core_hz: Mapping[int, float] = field(default_factory=dict)
    engine_share: Mapping[str, float] = field(default_factory=dict)
    engine_hz: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # one per cluster
    celsius: Mapping[str, float] = field(default_factory=dict)
    watt: Mapping[str, float] = field(default_factory=dict)  # now, not the average since its start
    translation_share: tuple[float, float] | None = None  # Denver's, foreground and background


def parse(line: str) -> Line:
    """Read one line; DataError when it is none of tegrastats."""
    memory = {
        name: (int(used) * scale, int(total) * scale)
        for name, used, total, prefix in _MEMORY.findall(line)
        for scale in (1024 if prefix == "k" else 1024**2,)
    }
    if not memory:
        raise DataError(f"'{line[:60]}' is no line of tegrastats: it states no RAM")
    shares, clocks = _cores(line)
    engine_share, engine_hz = _engines(line)
    mts = _MTS.search(line)
    return Line(
        memory,
        shares,
        clocks,
        engine_share,
        engine_hz,
        {name: float(c) for name, c in _HEAT.findall(line) if float(c) != OFFLINE_C},
        {name: int(mw) / 1e3 for name, mw, _ in _RAIL.findall(line) if name != NO_RAIL},
        (float(mts[1]), float(mts[2])) if mts else None,
    )


def _cores(line: str) -> tuple[dict[int, float], dict[int, float]]:
    shares: dict[int, float] = {}
    clocks: dict[int, float] = {}
    match = _CORES.search(line)
    if not match:
        return shares, clocks
    for core, text in enumerate(match[1].split(",")):
        load, _, mhz = text.partition("%")
        if load != "off":
            shares[core] = float(load)
            mhz = mhz.removeprefix("@") or match[2] or ""  # the old form has one clock for all
            if mhz:
                clocks[core] = float(mhz) * 1e6
    return shares, clocks


def _engines(line: str) -> tuple[dict[str, float], dict[str, tuple[float, ...]]]:
    shares: dict[str, float] = {}
    clocks: dict[str, tuple[float, ...]] = {}
    for name, load, clock in _ENGINE.findall(line):
        engine = name.removesuffix("_FREQ")
        if load:
            shares[engine] = float(load)
        if clock:
            clocks[engine] = tuple(float(mhz) * 1e6 for mhz in clock.strip("[]").split(","))
    return shares, clocks
