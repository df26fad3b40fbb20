"""Raw material of a run made into launches, events and steps on our clock. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pocketgrad.backends.api import Ran
from pocketgrad.base.dtypes import Array
from pocketgrad.engine.executable import Executable
from pocketgrad.profile.describe import launch_rows, upload_row
from pocketgrad.profile.gather import StepSeen
from pocketgrad.profile.intervals import covered, union
from pocketgrad.trace.clock import Alignment, Tie, align
from pocketgrad.trace.model import Span
from pocketgrad.trace.profile import Events, LaunchRow, StepRow

DISCARDED = 3  # as in the paper: caches and clocks settle


@dataclass(frozen=True, eq=False)
class Timeline:
    """What ran when."""

    launches: tuple[LaunchRow, ...]
    events: Events
    steps: tuple[StepRow, ...]
    clocks: Mapping[str, Alignment]

    @property
    def measured(self) -> tuple[StepRow, ...]:
        """The steps that count."""
        return tuple(step for step in self.steps if not step.discarded)

    @property
    def windows(self) -> tuple[Array, Array]:
        """Start and end of the steps that count."""
        found = self.measured
        return (
            np.array([step.start_ns for step in found], np.int64),
            np.array([step.end_ns for step in found], np.int64),
        )


def timeline(
    steps: Sequence[StepSeen],
    ran: Sequence[Ran],
    ties: Mapping[str, Sequence[Tie]],
    spans: Sequence[Span],
    discard: int = DISCARDED,
) -> Timeline:
    """The timeline of a run. At least one step counts, however many are to be discarded."""
    clocks = {queue: align(found) for queue, found in ties.items()}
    rows = _Rows(ran[0].queue if ran else next(iter(ties), "queue 0"))
    uploads = _uploads(steps, spans)
    columns: list[tuple[int, int, int, int, int, int]] = []
    whole: list[StepSeen] = []
    for step, commands in _by_step(steps, ran):
        names = uploads[step.number]
        numbers = rows.of(step.executable, commands, names)
        whole.append(step)
        columns += [
            (number, step.number, *_host_times(clocks[c.queue], c))
            for number, c in zip(numbers, commands, strict=True)
        ]
    table = np.array(columns, np.int64).reshape(-1, 6)
    events = Events(
        *(np.ascontiguousarray(c) for c in table[np.argsort(table[:, 4], kind="stable")].T)
    )
    if not ran:
        whole = list(steps)
        for step in steps:
            rows.program(step.executable)
    discarded = min(discard, max(len(whole) - 1, 0))
    return Timeline(tuple(rows.rows), events, _steps(whole, table, discarded), clocks)


def _host_times(clock: Alignment, ran: Ran) -> tuple[int, int, int, int]:
    """Times of a command on our clock; one not given by the driver becomes the next later one."""
    end, start = clock.host_ns(ran.end_ns), clock.host_ns(ran.start_ns)
    submitted = min(clock.host_ns(ran.submitted_ns), start) if ran.submitted_ns > 0 else start
    queued = min(clock.host_ns(ran.queued_ns), submitted) if ran.queued_ns > 0 else submitted
    return queued, submitted, start, max(start, end)


def _by_step(
    steps: Sequence[StepSeen], ran: Sequence[Ran]
) -> Iterator[tuple[StepSeen, Sequence[Ran]]]:
    """The commands of each step: uploads, then all launches. A last one that is cut is left out."""
    at = 0
    for step in steps:
        last = step.executable.bound.launches - 1
        stop = at
        while stop < len(ran) and not (ran[stop].kind == "launch" and ran[stop].number == last):
            stop += 1
        if stop >= len(ran):
            return
        yield step, ran[at : stop + 1]
        at = stop + 1


def _uploads(steps: Sequence[StepSeen], spans: Sequence[Span]) -> Mapping[int, list[str]]:
    """The names of what the host uploaded in each step, in order."""
    found = sorted((s for s in spans if s.name == "upload"), key=lambda s: s.start_ns)
    times = [s.start_ns for s in found]
    between = np.searchsorted(times, [(s.begin_ns, s.enqueued_ns) for s in steps])
    return {
        step.number: [str(s.args.get("name", "")) for s in found[low:high]]
        for step, (low, high) in zip(steps, between.reshape(-1, 2).tolist(), strict=True)
    }


@dataclass
class _Rows:
    """The list of launches as it grows: those of each program, then uploads as they appear."""

    queue: str
    rows: list[LaunchRow] = field(default_factory=list)
    _first: dict[int, int] = field(default_factory=dict)
    _uploads: dict[tuple[str, int], int] = field(default_factory=dict)

    def program(self, executable: Executable) -> int:
        """Where the launches of a program begin."""
        key = id(executable)
        if key not in self._first:
            self._first[key] = len(self.rows)
            owners = executable.bound.owners
            self.rows += launch_rows(executable.plan, executable.lowered, owners, self.queue)
        return self._first[key]

    def of(
        self, executable: Executable, commands: Sequence[Ran], names: Sequence[str]
    ) -> list[int]:
        """The row of each command; ``names`` are those of its uploads, in order."""
        first = self.program(executable)
        left = list(names)
        return [
            first + c.number
            if c.kind == "launch"
            else self._upload(left.pop(0) if left else "", c.number)
            for c in commands
        ]

    def _upload(self, name: str, nbytes: int) -> int:
        if (name, nbytes) not in self._uploads:
            self._uploads[name, nbytes] = len(self.rows)
            self.rows.append(upload_row(name, nbytes, self.queue))
        return self._uploads[name, nbytes]


def _steps(steps: Sequence[StepSeen], table: Array, discarded: int) -> tuple[StepRow, ...]:
    """Windows of the steps: each from the end of the one before, if that one went before it."""
    order = np.argsort(table[:, 1], kind="stable")
    by_step = table[order]
    edges = np.searchsorted(by_step[:, 1], [[s.number, s.number + 1] for s in steps])
    found: list[StepRow] = []
    for index, (step, (low, high)) in enumerate(
        zip(steps, edges.reshape(-1, 2).tolist(), strict=True)
    ):
        mine = by_step[low:high]
        end = int(mine[:, 5].max()) if len(mine) else step.end_ns
        start = min(step.begin_ns, int(mine[:, 4].min())) if len(mine) else step.begin_ns
        if found:
            before = found[-1].end_ns
            start = before if step.follows else max(before, start)
        busy = union(mine[:, 4], mine[:, 5])
        inside = covered(*busy, np.array([start, end], np.int64))
        found.append(
            StepRow(step.number, start, end, int(inside[1] - inside[0]), index < discarded)
        )
    return tuple(found)
