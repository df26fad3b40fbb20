"""ARM Mali through vendor drivers: kbase, Rockchip's devfreq, Samsung's and MediaTek's own files.

panfrost and panthor are seen by `drm_fdinfo`.
"""

from __future__ import annotations

from collections.abc import Callable

from pocketgrad.telemetry.api import MS, Found, Search
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import number, share
from pocketgrad.trace.model import Basis, Channel, Kind

KBASE = "/sys/class/misc/mali0/device"
DEVFREQ = "/sys/class/devfreq"
NODE = r"[0-9a-f]+\.(gpu|mali)|mali0?"
EXYNOS = "/sys/kernel/gpu"
GED = "/sys/kernel/ged/hal"


def kilohertz_second(text: str) -> float:
    """MediaTek's 'index kHz' in Hz."""
    return float(text.split()[1]) * 1e3


def exynos_clock(text: str) -> float:
    """MHz on some devices and kHz on others: no GPU runs at 10 GHz, none at 10 MHz when busy."""
    value = number(text)
    return value * (1e6 if value < 10_000 else 1e3)


def find(machine: Machine) -> Found:
    """Utilisation and clock from whichever of the places this phone or board has."""
    search = Search("gpu_mali")
    info = (machine.get(f"{KBASE}/gpuinfo") or machine.get(f"{EXYNOS}/gpu_model") or "Mali").split()
    scope = f"gpu {info[0]}"

    def file(name: str, quantity: str, path: str, parse: Callable[[str], float]) -> None:
        folder, _, leaf = path.rpartition("/")
        if leaf not in machine.names(folder):
            return
        kind, basis, period_ms = Kind.AVERAGE, Basis.COUNTER, 20
        if quantity == "frequency":
            kind, basis = Kind.GAUGE, Basis.REQUESTED
        channel = Channel(f"gpu_mali/{name}", quantity, kind, scope, path, basis)
        search.file(machine, channel, parse, period_ms * MS)

    for spelling in ("utilisation", "utilization"):
        file(f"kbase/{spelling}", "share", f"{KBASE}/{spelling}", share)
    for node in machine.names(DEVFREQ, NODE):
        load = machine.get(f"{DEVFREQ}/{node}/load") or ""
        if "@" in load:  # Jetson's nodes are named alike and have no such file
            file(f"{node}/utilisation", "share", f"{DEVFREQ}/{node}/load", share)
            file(f"{node}/frequency", "frequency", f"{DEVFREQ}/{node}/cur_freq", number)
    file("exynos/utilisation", "share", f"{EXYNOS}/gpu_busy", share)
    file("exynos/frequency", "frequency", f"{EXYNOS}/gpu_clock", exynos_clock)
    file("mediatek/utilisation", "share", f"{GED}/gpu_utilization", share)
    # The driver spells it so.
    file("mediatek/frequency", "frequency", f"{GED}/current_freqency", kilohertz_second)
    return search.found(f"neither {KBASE}, {EXYNOS} nor {GED} tells, nor a load in {DEVFREQ}")
