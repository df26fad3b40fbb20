"""The GPU and memory controller of NVIDIA Jetson boards, old (TX2) and new (Orin).

Their power is a rail of `ina3221`; NVML is not there before Thor.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import number
from pocketgrad.trace.model import Basis, Channel, Kind

DEVFREQ = "/sys/class/devfreq"
NAMES = {"gpu", "gp10b", "gv11b", "ga10b", "gb10b"}
PLATFORM = "/sys/devices/platform"
LOADS = ("/sys/devices/gpu.0/load", f"{PLATFORM}/gpu.0/load")
EMC_CLOCK = "/sys/kernel/debug/bpmp/debug/clk/emc/rate"
EMC_ACTIVITY = (
    "/sys/kernel/actmon_avg_activity/mc_all",
    "/sys/kernel/debug/cactmon/mc_all",
    "/sys/kernel/debug/bpmp/debug/actmon/mc_all_avg_activity",
)


def find(machine: Machine) -> Found:
    """GPU load and clock, by the node's name, and the share of memory bandwidth in use."""
    search = Search("gpu_jetson")
    nodes = {
        node: name
        for node in machine.names(DEVFREQ)
        if (name := machine.get(f"{DEVFREQ}/{node}/device/of_node/name") or "") in NAMES
    }
    for node, name in nodes.items():
        _gpu(machine, search, node, name)
    if not nodes:
        return search.found(f"no node of {DEVFREQ} is a GPU of NVIDIA's")
    _memory(machine, search)
    return search.found("")


def per_mille(text: str) -> float:
    """The driver's 0 to 1000 in percent."""
    value = int(text)
    if not 0 <= value <= 1000:
        raise ValueError(text)
    return value / 10


def _gpu(machine: Machine, search: Search, node: str, name: str) -> None:
    scope = f"gpu {name}"
    places = (
        f"{DEVFREQ}/{node}/device/load",
        *LOADS,
        f"{PLATFORM}/{node}/load",
        f"{PLATFORM}/bus@0/{node}/load",
    )
    path = next((p for p in places if machine.get(p) is not None), places[0])
    load = Channel(
        f"gpu_jetson/{name}/utilisation", "share", Kind.AVERAGE, scope, path, Basis.COUNTER
    )
    search.file(machine, load, per_mille, 20 * MS)
    clock = Channel(
        f"gpu_jetson/{name}/frequency",
        "frequency",
        Kind.GAUGE,
        scope,
        f"{DEVFREQ}/{node}/cur_freq",
        Basis.REQUESTED,
    )
    search.file(machine, clock, number, 20 * MS)


def _memory(machine: Machine, search: Search) -> None:
    """Activity in kHz over the clock in Hz; both lie in debugfs, which root alone may read."""
    path = next((p for p in EMC_ACTIVITY if machine.get(p) is not None), EMC_ACTIVITY[0])
    channel = Channel(
        "gpu_jetson/emc/utilisation",
        "share",
        Kind.AVERAGE,
        "memory controller",
        f"{path} / {EMC_CLOCK}",
        Basis.COUNTER,
    )

    def read() -> Mapping[str, float]:
        khz = machine.value(EMC_CLOCK, number) / 1e3
        return {channel.name: 100 * machine.value(path, number) / khz if khz else 0.0}

    search.probe(Probe((channel,), read, 20 * MS))
