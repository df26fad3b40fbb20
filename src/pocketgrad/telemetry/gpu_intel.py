"""Clock, sleep and throttling of Intel GPUs (drivers i915 and xe) from sysfs.

Their busy time per engine comes from `drm_fdinfo`: the PMU would need perf_event_open.
"""

from __future__ import annotations

from pocketgrad.telemetry.api import MS, Found, Search, distinct
from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import number, scaled
from pocketgrad.telemetry.pci import cards
from pocketgrad.trace.model import Basis, Channel, Kind

VENDOR = "0x8086"
CLOCKS = (  # the newest driver's place first
    "device/tile0/gt0/freq0/act_freq",
    "gt/gt0/rps_act_freq_mhz",
    "gt_act_freq_mhz",
)
SLEEPS = ("gt/gt0/rc6_residency_ms", "power/rc6_residency_ms")


def find(machine: Machine) -> Found:
    """A clock and, where stated, the time asleep of each card."""
    search = Search("gpu_intel")
    found = cards(machine, VENDOR)
    labels = distinct([("intel", card.slot) for card in found])
    for card, label in zip(found, labels, strict=True):
        clock = _first(machine, card.folder, CLOCKS)
        channel = Channel(
            f"gpu_intel/{label}/frequency", "frequency", Kind.GAUGE, f"gpu {card.slot}", clock
        )
        search.file(machine, channel, scaled(1e6), 20 * MS)
        asleep = _first(machine, card.folder, SLEEPS)
        name = f"gpu_intel/{label}/asleep"
        scope = f"gpu {card.slot}"
        search.file(
            machine,
            Channel(name, "time", Kind.CUMULATIVE, scope, asleep, Basis.COUNTER),
            lambda text: number(text) * 1e6,
            50 * MS,
        )
    return search.found("no card of Intel's under /sys/class/drm")


def _first(machine: Machine, folder: str, files: tuple[str, ...]) -> str:
    paths = [f"{folder}/{file}" for file in files]
    return next((path for path in paths if machine.get(path) is not None), paths[-1])
