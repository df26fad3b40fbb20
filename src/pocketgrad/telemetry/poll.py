"""Polls probes: stamps each read, keeps changes only, and learns what every source can resolve.

No thread and no clock of its own: `thread` drives it, tests drive it with made-up times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pocketgrad.telemetry.api import Probe
from pocketgrad.telemetry.machine import UnreadableError
from pocketgrad.trace.model import Absent
from pocketgrad.trace.recorder import Recorder


@dataclass(slots=True)
class Health:
    """How one probe fared: cost of its reads, changes per channel, and what went wrong."""

    probe: Probe
    polls: int = 0
    read_total_ns: int = 0
    read_max_ns: int = 0
    late: int = 0  # polls that came more than a period late
    changes: Counter[str] = field(default_factory=Counter)
    first_change_ns: dict[str, int] = field(default_factory=dict)
    last_change_ns: dict[str, int] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def read_mean_ns(self) -> float:
        """The mean cost of a read, in time that passed."""
        return self.read_total_ns / self.polls if self.polls else 0.0

    def refresh_ns(self, name: str) -> float | None:
        """The mean time between changes of a channel, from the first to the last one seen."""
        count = self.changes[name]
        if count < 2:
            return None  # nothing can be said of a source that changed once or never
        return (self.last_change_ns[name] - self.first_change_ns[name]) / (count - 1)


class Poller:
    """Reads each probe when it is due, in the order of the list."""

    def __init__(
        self,
        probes: Sequence[Probe],
        recorder: Recorder,
        period_ns: int,
        clock: Callable[[], int],
    ) -> None:
        self._recorder, self._clock = recorder, clock
        self.stretched = 1.0  # by how much all periods were made longer
        self.healths = tuple(Health(probe) for probe in probes)
        self._periods = [max(period_ns, probe.period_ns) for probe in probes]
        self._due: list[int | None] = [None] * len(probes)
        self._start: int | None = None
        self._seen: dict[str, tuple[int, float]] = {}  # the last value, and when it was last read
        self._kept: dict[str, int] = {}  # when the last stored sample was taken
        for probe in probes:
            for channel in probe.channels:
                recorder.declare(channel)

    def poll(self) -> int:
        """Read what is due; when the next one will be.

        All periods count from one start, so that probes fall due together and wake us once.
        """
        now = self._clock()
        if self._start is None:
            self._start = now
        for index, health in enumerate(self.healths):
            due, period = self._due[index], self._periods[index]
            if due is not None and now < due:
                continue
            health.late += due is not None and now - due >= period
            self._due[index] = self._start + ((now - self._start) // period + 1) * period
            self._read(health)
        return min((due for due in self._due if due is not None), default=now)

    def stretch(self, factor: float) -> None:
        """Make all periods longer from the next poll on."""
        self._periods = [round(period * factor) for period in self._periods]
        self.stretched *= factor

    def poll_all(self) -> None:
        """Read everything, due or not: the last reading of a run."""
        for health in self.healths:
            self._read(health)

    def finish(self) -> None:
        """Store when each unchanged value was last seen: a series ends there, not at its change.

        A channel that never gave a value is noted as absent, with the most frequent reason.
        """
        for name, (t_ns, value) in self._seen.items():
            if t_ns > self._kept[name]:
                self._keep(name, t_ns, value)
        for health in self.healths:
            for channel in health.probe.channels:
                if channel.name not in self._kept and health.failures:
                    reason, count = health.failures.most_common(1)[0]
                    text = f"{count} of {health.polls} reads failed: {reason}"
                    self._recorder.missing([Absent(channel.name, text)])

    def latest(self) -> Mapping[str, float]:
        """The last value of every channel that could be read the last time."""
        return {name: value for name, (_, value) in self._seen.copy().items()}

    def _read(self, health: Health) -> None:
        start = self._clock()
        try:
            values = health.probe.read()
        except UnreadableError as error:
            values = None
            health.failures[str(error)] += 1
        end = self._clock()
        health.polls += 1
        health.read_total_ns += end - start
        health.read_max_ns = max(health.read_max_ns, end - start)
        if values is None:
            self._gap(health)
            return
        t_ns = (start + end) // 2
        for channel in health.probe.channels:
            value = values.get(channel.name)
            if value is None:
                health.failures[f"{channel.name}: not in {channel.source} this time"] += 1
                self._end(channel.name)
            else:
                self._take(health, channel.name, t_ns, value)

    def _gap(self, health: Health) -> None:
        for channel in health.probe.channels:
            self._end(channel.name)

    def _end(self, name: str) -> None:
        """A value is not known to hold beyond its last good read."""
        seen = self._seen.pop(name, None)
        if seen and seen[0] > self._kept[name]:
            self._keep(name, *seen)

    def _take(self, health: Health, name: str, t_ns: int, value: float) -> None:
        last = self._seen.get(name)
        self._seen[name] = (t_ns, value)
        if last is not None:
            if last[1] == value:
                return
            health.changes[name] += 1
            health.first_change_ns.setdefault(name, t_ns)
            health.last_change_ns[name] = t_ns
        self._keep(name, t_ns, value)

    def _keep(self, name: str, t_ns: int, value: float) -> None:
        self._kept[name] = t_ns
        self._recorder.sample(name, t_ns, value)
