"""Busy and idle time per core from /proc/stat, in ticks of mostly 10 ms.

Good per step, not per operation; where there is cpuidle, `cpuidle` resolves microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.trace.model import Basis, Channel, Kind

PATH = "/proc/stat"
PERIOD_NS = 50 * MS  # five ticks; each read makes the kernel format all interrupt counts


def find(machine: Machine) -> Found:
    """A cumulative 'busy' and 'idle' per core that is online."""
    search = Search("proc_stat")
    try:
        first = _times(machine)
    except UnreadableError as error:
        search.missing(search.sampler, str(error))
        return search.found("")
    channels = tuple(_channel(name) for name in first)
    search.probe(Probe(channels, lambda: _times(machine), PERIOD_NS))
    return search.found("")


def _channel(name: str) -> Channel:
    _, core, state = name.split("/")
    note = "includes iowait, which may decrease" if state == "idle" else ""
    scope = f"core {core}"
    return Channel(name, "time", Kind.CUMULATIVE, scope, PATH, Basis.COUNTER, note=note)


def _times(machine: Machine) -> Mapping[str, float]:
    found: dict[str, float] = {}
    tick_ns = 1e9 / machine.ticks_per_s
    for line in machine.text(PATH, keep=True).splitlines():
        if not line.startswith("cpu"):
            break  # the cores come first
        core, *words = line.split()
        if core == "cpu":
            continue  # the sum over cores changes when one goes offline
        try:
            user, nice, system, idle, iowait, irq, softirq = map(int, words[:7])
            steal = int(words[7]) if len(words) > 7 else 0
        except ValueError:
            raise UnreadableError(
                f"{PATH} holds '{line[:60]}', which is no line of times"
            ) from None
        # guest and guest_nice are already inside of user and nice.
        found[f"proc_stat/{core}/busy"] = (user + nice + system + irq + softirq + steal) * tick_ns
        found[f"proc_stat/{core}/idle"] = (idle + iowait) * tick_ns
    if not found:
        raise UnreadableError(f"{PATH} has no line of a core")
    return found
