"""What else the machine does while a block runs: CPU time of all, of participants, and stolen.

Counted by the kernel in ticks of mostly 10 ms; None where it does not tell (Android).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pocketgrad.telemetry.machine import Machine, UnreadableError, this_machine


@dataclass(frozen=True)
class Reading:
    """CPU seconds since some start."""

    at_s: float
    busy_s: float  # of the whole machine, with what was stolen
    stolen_s: float  # by other guests of a virtual machine's host
    processes_s: Mapping[int, float]


@dataclass(frozen=True)
class Usage:
    """Cores in use between two readings: 1.0 is one core all the time."""

    others: float
    stolen: float
    processes: Mapping[int, float]


class Load:
    """Reads the machine; the root can be replaced by a recorded one."""

    def __init__(
        self, machine: Machine | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.machine, self.clock = machine or this_machine(), clock

    def read(self, pids: list[int]) -> Reading | None:
        """Now, with these processes (and this one) apart."""
        try:
            line = self.machine.text("/proc/stat", keep=True).split("\n", 1)[0]
            ticks = [int(word) for word in line.split()[1:]]
            apart = {pid: self._process(str(pid)) for pid in pids} | {0: self._process("self")}
        except (UnreadableError, ValueError, IndexError):
            return None
        per_s = self.machine.ticks_per_s
        stolen = ticks[7] if len(ticks) > 7 else 0
        busy = sum(ticks[:3]) + sum(ticks[5:7]) + stolen
        return Reading(self.clock(), busy / per_s, stolen / per_s, apart)

    def _process(self, name: str) -> float:
        words = self.machine.text(f"/proc/{name}/stat").rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / self.machine.ticks_per_s


def usage(before: Reading | None, after: Reading | None) -> Usage | None:
    """What was used between two readings; None where either is missing or they are too close."""
    if before is None or after is None or after.at_s - before.at_s < 0.05:
        return None
    seconds = after.at_s - before.at_s
    used = {
        pid: (spent - before.processes_s.get(pid, spent)) / seconds
        for pid, spent in after.processes_s.items()
    }
    stolen = (after.stolen_s - before.stolen_s) / seconds
    busy = (after.busy_s - before.busy_s) / seconds
    others = max(0.0, busy - stolen - sum(used.values()))
    return Usage(others, stolen, {pid: u for pid, u in used.items() if pid})
