"""Listens to a session while steps run: which began when, and which commands belong to which step.

Keeps raw material only and asks the device for nothing but ties of its clock; see `assemble`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pocketgrad.backends.api import Profiling, Ran
from pocketgrad.base.errors import DeviceError
from pocketgrad.engine.executable import Executable
from pocketgrad.trace.clock import Tie, now_ns
from pocketgrad.trace.recorder import Recorder
from pocketgrad.train.session import Session

EVENTS = 200_000  # launches and uploads kept: some 20 MB as text
SAMPLES = 2_000_000  # values and spans kept
UPLOADS = 3  # at most in a step: x, y, weight
TIE_NS = 5_000_000_000  # clocks drift by tens of microseconds in this time
_LOOK_NS = 1_000_000_000  # how often the number of samples is looked at


@dataclass(slots=True)
class StepSeen:
    """A training step as the host saw it. ``follows``: nothing else ran since the step before."""

    number: int
    executable: Executable
    begin_ns: int
    enqueued_ns: int = 0
    end_ns: int = 0  # only where the device keeps no times
    follows: bool = False


@dataclass(eq=False)
class Gatherer:
    """A session's `Watch`. Between ``open`` and ``close`` it also records what the host does."""

    session: Session
    recorder: Recorder
    steps: list[StepSeen] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    ties: dict[str, list[Tie]] = field(default_factory=dict)
    why_no_times: str = ""
    source: str = "not available"
    full: str = ""  # why recording ended before the run did
    _timing: Profiling | None = None
    _open: StepSeen | None = None
    _follows: bool = False
    _commands: int = 0
    _tied_ns: int = 0
    _looked_ns: int = 0

    def open(self) -> None:
        """Begin to listen; a device that keeps no times is an answer, kept in ``why_no_times``."""
        try:
            self._timing = self.session.backend.profiling()
        except DeviceError as error:
            self.why_no_times = str(error)
        else:
            self.source = self._timing.source
            self._timing.on = False
            self._tie()
        self.session.recorder, self.session.watch = self.recorder, self

    def close(self) -> None:
        """Stop listening and take all that ran; also after an interruption."""
        from pocketgrad.trace.recorder import OFF

        self.session.recorder, self.session.watch = OFF, None
        if self._timing is not None:
            self._timing.on = False
            self.ran += self._timing.take()
            self._tie()
            self._timing.close()
            self._timing = None

    def begin(self, executable: Executable, training: bool) -> None:
        """A run begins."""
        if self._open is not None:  # left by an exception: its commands cannot be told apart
            self.full = f"the profile ends after step {len(self.steps)}, the next was interrupted"
            self._open = None
        if not training or self.full:
            self._follows = False
            return
        now = now_ns()
        number = self.steps[-1].number + 1 if self.steps else 1
        self._open = StepSeen(number, executable, now, follows=self._follows)
        if self._timing is not None:
            self._timing.on = True

    def end(self) -> None:
        """It is enqueued."""
        step = self._open
        if step is None:
            return
        step.enqueued_ns = now_ns()
        self.steps.append(step)
        self._open, self._follows = None, True
        if self._timing is None:
            self.session.backend.finish()
            step.end_ns = now_ns()
        else:
            self._timing.on = False
            if now_ns() - self._tied_ns > TIE_NS:
                self._tie()
        self._commands += step.executable.bound.launches + UPLOADS
        self._bound()

    def _tie(self) -> None:
        assert self._timing is not None
        for queue, tie in self._timing.ties().items():
            self.ties.setdefault(queue, []).append(tie)
        self._tied_ns = now_ns()

    def _bound(self) -> None:
        """A run of hours must not fill memory and disk: what is too much is left out, and said."""
        now = now_ns()
        many = False
        if now - self._looked_ns > _LOOK_NS:
            self._looked_ns = now
            many = self.recorder.size > SAMPLES
        if many or self._commands > EVENTS:
            what = f"{SAMPLES:,} samples" if many else f"{EVENTS:,} launches"
            self.full = (
                f"the profile ends after step {self.steps[-1].number}, with {what}; "
                "profile fewer steps at a time to see later ones"
            )
            self.recorder.on = False
