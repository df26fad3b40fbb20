"""`pg.profile(trainer)`: measures the training steps of a `with` block."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from pocketgrad.base.errors import SettingError
from pocketgrad.profile import folder as folders
from pocketgrad.profile import text
from pocketgrad.profile.assemble import DISCARDED, Timeline, timeline
from pocketgrad.profile.describe import memory_curve
from pocketgrad.profile.gather import Gatherer
from pocketgrad.profile.result import Measured, profile
from pocketgrad.report.exporters import Saved
from pocketgrad.telemetry import find
from pocketgrad.telemetry.machine import Machine, this_machine
from pocketgrad.telemetry.playback import Playback, load
from pocketgrad.telemetry.thread import PERIOD_NS, Monitor
from pocketgrad.trace.clock import now_ns
from pocketgrad.trace.model import Absent, Scalar, Trace
from pocketgrad.trace.profile import Ceiling, MemoryCurve, Overhead, Profile, StepRow
from pocketgrad.trace.recorder import Recorder
from pocketgrad.train.preview import kind_of_buffer
from pocketgrad.train.session import Session

T = TypeVar("T")
AWAY_NS = 50_000_000  # samplers are given so long for their first reading


class Trains(Protocol):
    """What is profiled: a Trainer."""

    @property
    def session(self) -> Session:
        """Its state on the device."""


class Profiler:
    """Measures between entry and exit; then it has ``result``. It measures once."""

    def __init__(
        self,
        trainer: Trains,
        *,
        discard: int = DISCARDED,
        period_ns: int = PERIOD_NS,
        device_tree: str | Path | None = None,
    ) -> None:
        if discard < 0:
            raise SettingError(f"discard {discard}: leave out 0 or more first steps")
        self.trainer, self._discard, self._period_ns = trainer, discard, period_ns
        self._tree = None if device_tree is None else load(Path(device_tree))
        self._tree_name = "" if device_tree is None else str(device_tree)
        self._recorder = Recorder()
        self._gatherer: Gatherer | None = None
        self._monitor: Monitor | None = None
        self._trace: Trace | None = None
        self._timeline: Timeline | None = None
        self._result: Profile | None = None
        self.metadata: dict[str, Scalar] = {}  # the caller may add: model, command
        self.ceilings: tuple[Ceiling, ...] = ()  # and this, measured apart
        self.absent: tuple[Absent, ...] = ()
        self.overhead: Overhead | None = None

    def __enter__(self) -> Self:
        if self._gatherer is not None:
            raise SettingError("this profiler has measured already; make another with pg.profile()")
        session = self.trainer.session
        self._gatherer = Gatherer(session, self._recorder)
        self._gatherer.open()
        machine = this_machine() if self._tree is None else self._played()
        self._monitor = Monitor(find(machine), self._recorder, self._period_ns).start()
        self._monitor.wait_for_first(AWAY_NS)
        return self

    def _played(self) -> Machine:
        assert self._tree is not None
        begun = now_ns()
        return Playback(self._tree, lambda: now_ns() - begun).machine

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._gatherer is not None
        assert self._monitor is not None
        try:
            self._gatherer.close()
        finally:
            self._monitor.stop()
        seen, self._trace = self._gatherer, self._recorder.trace()
        self._timeline = timeline(seen.steps, seen.ran, seen.ties, self._trace.spans, self._discard)

    def loading(self, batches: Iterable[T], most: int) -> Iterator[T]:
        """At most so many batches, with the time that each takes to come, as a host span."""
        return self._recorder.each("load", islice(batches, most))

    @property
    def measured(self) -> bool:
        """Whether there is at least one complete step."""
        return self._gatherer is not None and bool(self._gatherer.steps)

    @property
    def steps(self) -> tuple[StepRow, ...]:
        """The measured steps."""
        return self._timeline.measured if self._timeline else ()

    @property
    def result(self) -> Profile:
        """What was measured; also after an interruption, of the steps that were complete."""
        if self._gatherer is None or self._timeline is None or self._trace is None:
            raise SettingError("there is no profile yet: it is made when the `with` block ends")
        if self._result is None:
            self._result = self._made(self._gatherer, self._timeline, self._trace)
        return self._result

    def table(self) -> str:
        """The summary as text."""
        return text.summary(self.result)

    def save(self, folder: str | Path) -> Saved:
        """Write everything into a folder: page, traces, tables, and what `load` reads back."""
        return folders.save(self.result, Path(folder))

    def _made(self, seen: Gatherer, found: Timeline, trace: Trace) -> Profile:
        assert self._monitor is not None
        cost = self._monitor.cost
        events = self.overhead or Overhead()
        overhead = Overhead(
            cost.cpu_ns, cost.elapsed_ns, cost.polls, cost.late, cost.stretched,
            events.plain_step_ns, events.profiled_step_ns,
        )  # fmt: skip
        measured = Measured(
            found,
            trace,
            self._batch(seen),
            self._period_ns,
            self._memory(seen),
            overhead,
            self.ceilings,
            self.absent + _no_times(seen),
            tuple(self._warnings(seen, len(found.measured))),
        )
        return profile(measured, self._about(seen) | self.metadata)

    def _about(self, seen: Gatherer) -> dict[str, Scalar]:
        backend = seen.session.backend
        report = getattr(backend, "report", None)
        about: dict[str, Scalar] = {
            "device": backend.name,
            "device_name": backend.info.name,
            "device_kind": backend.info.kind,
            "driver": f"{report.platform} {report.driver}" if report else "none",
            "timing": seen.source,
            "batch": self._batch(seen),
            "period_ns": self._period_ns,
            "python": platform.python_version(),
            "system": platform.platform(),
        }
        if self._tree is not None:
            about["device_tree"] = self._tree_name
        return about

    def _batch(self, seen: Gatherer) -> int:
        if not seen.steps:
            return 0
        inputs = seen.steps[-1].executable.plan.graph.inputs
        return next((v.shape[0] for v in inputs if v.name == "x"), 0)

    def _memory(self, seen: Gatherer) -> MemoryCurve | None:
        if not seen.steps:
            return None
        ran = seen.steps[-1].executable
        return memory_curve(
            ran.plan, ran.lowered, ran.bound.owners, kind_of_buffer, seen.session.allocated_nbytes
        )

    def _warnings(self, seen: Gatherer, measured: int) -> list[str]:
        found = [seen.full] if seen.full else []
        if self.trainer.session is not seen.session:
            found.append(
                "the trainer made a new plan (freeze or unfreeze) inside the block; the steps "
                "after it are not in the profile"
            )
        if measured < 3:
            found.append(
                f"{measured} of {len(seen.steps)} steps were measured, the others are warm-ups: "
                "run more for numbers that can be compared"
            )
        return found


def _no_times(seen: Gatherer) -> tuple[Absent, ...]:
    return (Absent("launch times", seen.why_no_times),) if seen.why_no_times else ()
