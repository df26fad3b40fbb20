"""Samples in the background while something else runs, and says what that cost.

One thread per lane of probes, so that a sensor that blocks for 40 ms delays no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pocketgrad.base.errors import SettingError
from pocketgrad.telemetry.api import MS, Found
from pocketgrad.telemetry.poll import Health, Poller
from pocketgrad.trace.clock import now_ns
from pocketgrad.trace.recorder import Recorder

PERIOD_NS = 10 * MS  # the paper's, chosen there to keep the cost down
BUDGET = 0.01  # of one core; a small board with many rails would exceed it at 10 ms
REVIEW_NS = 2000 * MS


@dataclass(frozen=True, slots=True)
class Cost:
    """What sampling took from the machine."""

    cpu_ns: int  # of all sampling threads, between the first reading of everything and the last
    elapsed_ns: int
    polls: int
    late: int
    stretched: float  # periods were made this many times longer to stay within the budget

    @property
    def of_one_core(self) -> float:
        """The share of one core, from 0 to 1."""
        return self.cpu_ns / self.elapsed_ns if self.elapsed_ns else 0.0


def excess(cpu_ns: int, elapsed_ns: int, budget: float) -> float:
    """By how much to make periods longer: 1 within a tenth of the budget, at most 2 at a time."""
    over = cpu_ns / (elapsed_ns * budget)
    return 1.0 if over <= 1.1 else min(over, 2.0)


class Monitor:
    """Samples from ``start`` to ``stop``, or for the length of a ``with`` block."""

    def __init__(
        self,
        found: Found,
        recorder: Recorder,
        period_ns: int = PERIOD_NS,
        clock: Callable[[], int] = now_ns,
        budget: float = BUDGET,
    ) -> None:
        if period_ns < MS:
            raise SettingError(
                f"a sampling period of {period_ns} ns was asked; below {MS} ns (1 ms) a sampler "
                "in Python disturbs what it measures, and no source here is faster"
            )
        self._stop = threading.Event()
        self._spent: list[tuple[int, int]] = []  # of each thread: processor time, and how long
        self._problems: list[BaseException] = []
        self._recorder = recorder
        self.absent = found.absent
        recorder.missing(found.absent)
        lanes = sorted({probe.lane for probe in found.probes})
        self._pollers = [
            Poller([p for p in found.probes if p.lane == lane], recorder, period_ns, clock)
            for lane in lanes
        ]
        self._budget = budget / max(1, len(lanes))
        self._threads: list[threading.Thread] = []

    def start(self) -> Self:
        """Begin, unless the recorder is off."""
        if self._threads:
            raise SettingError("this monitor has been started already; make another one")
        if self._recorder.on:
            self._threads = [
                threading.Thread(target=self._work, args=(poller,), name="sampler", daemon=True)
                for poller in self._pollers
            ]
        for thread in self._threads:
            thread.start()
        return self

    def wait_for_first(self, most_ns: int) -> None:
        """Until everything was read once, or so long: what comes next is covered by samples."""
        until = now_ns() + most_ns
        while now_ns() < until and not all(health.polls for health in self.healths):
            time.sleep(0.001)

    def stop(self) -> None:
        """End, after one last read of everything, so that the record covers the whole time."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._problems:
            raise self._problems[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def healths(self) -> Sequence[Health]:
        """How each probe fared."""
        return [health for poller in self._pollers for health in poller.healths]

    @property
    def cost(self) -> Cost:
        """What it took, complete after ``stop``."""
        polls = sum(health.polls for health in self.healths)
        late = sum(health.late for health in self.healths)
        stretched = max((poller.stretched for poller in self._pollers), default=1.0)
        elapsed = max((elapsed for _, elapsed in self._spent), default=0)
        return Cost(sum(cpu for cpu, _ in self._spent), elapsed, polls, late, stretched)

    def latest(self) -> Mapping[str, float]:
        """The last value of each channel, for showing while it runs."""
        return {name: v for poller in self._pollers for name, v in poller.latest().items()}

    def refresh_ns(self) -> Mapping[str, float | None]:
        """The measured refresh of every channel; None for what did not change twice."""
        return {
            channel.name: health.refresh_ns(channel.name)
            for health in self.healths
            for channel in health.probe.channels
        }

    def _work(self, poller: Poller) -> None:
        try:
            poller.poll()
            begun = since = (now_ns(), time.thread_time_ns())
            while not self._stop.is_set():
                wait_ns = poller.poll() - now_ns()
                if wait_ns > 0:
                    self._stop.wait(wait_ns / 1e9)
                if now_ns() - since[0] > REVIEW_NS:
                    now = (now_ns(), time.thread_time_ns())
                    factor = excess(now[1] - since[1], now[0] - since[0], self._budget)
                    if factor > 1:
                        poller.stretch(factor)
                    since = now
            self._spent.append((time.thread_time_ns() - begun[1], now_ns() - begun[0]))
            poller.poll_all()
            poller.finish()
        except BaseException as error:  # raised again in stop(), where it is seen
            self._problems.append(error)
