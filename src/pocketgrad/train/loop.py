"""The loop over epochs and batches: reads the device seldom, looks after faults, checkpoints,
interruption and callbacks. What is trained, and how a checkpoint is made, the trainer knows.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from pocketgrad.base.errors import NumericsError, PocketgradError
from pocketgrad.train.batches import Batch, Feed, inputs_of
from pocketgrad.train.diagnosis import bad_label, broken_loss
from pocketgrad.train.progress import Display
from pocketgrad.train.session import Faults, Session, Totals
from pocketgrad.train.step import Inputs, Kind

POLL_S = 0.4  # two reads each: the device is asked at most five times a second

Recent = list[tuple[int, str, Batch]]  # step, where the batch came from, the batch


@dataclass
class Position:
    """The next batch to train on."""

    epoch: int = 0
    index: int = 0


@dataclass
class Interrupt:
    """Ctrl-C as a wish: the step in the making is finished first; a second Ctrl-C insists."""

    asked: bool = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        """While inside, remember instead of raising; only the main thread gets signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)
        if before is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@dataclass(eq=False)
class EpochRun:
    """The batches that are left of one epoch. ``on_batch`` is called after each step."""

    session: Session
    feed: Feed
    place: Position
    display: Display
    interrupt: Interrupt
    on_batch: Callable[[int], None]
    shown_epoch: int = 0
    samples: int = 0
    seconds: float = 0.0
    moved: int = 0  # bytes between host and device
    inputs: Inputs | None = None
    _recent: Recent = field(default_factory=list)

    def run(self) -> bool:
        """Train to the end of the epoch; False when interrupted before."""
        started = polled = 0.0
        fresh = False
        step = int(self.session.read_state("step"))
        batches = self.feed.epoch(self.place.epoch, self.place.index)
        for batch in self.session.recorder.each("load", batches):
            if self.inputs is None:
                self.inputs = inputs_of(batch.x, batch.y, self.feed.stored)
                fresh = self._build(self.inputs)
                started = polled = time.perf_counter()
            where = f"epoch {self.place.epoch}, batch {self.place.index} (step {step})"
            self._recent.append((step, where, batch))
            step += self.session.train_kind() != "accumulate"
            before = self.session.moved_nbytes
            self.session.train(self.inputs, batch.x, batch.y, batch.weight)
            self.place.index += 1
            self.samples += batch.count
            if fresh:  # drivers compile at the first launch: not counted
                self.session.backend.finish()
                self.samples, fresh = 0, False
                started = polled = time.perf_counter()
            now = time.perf_counter()
            self.seconds = now - started
            if now - polled >= POLL_S:
                self.poll()
                polled = time.perf_counter()
            self.moved += self.session.moved_nbytes - before
            self.on_batch(step)
            if self.interrupt.asked:
                self.poll()
                return False
        self.poll()
        self.seconds = time.perf_counter() - started
        self.place.epoch, self.place.index = self.place.epoch + 1, 0
        return True

    def _build(self, inputs: Inputs) -> bool:
        """Make what training needs; whether any of it is new."""
        kinds: Sequence[Kind] = ("train",)
        if self.session.spec.accumulate > 1:
            kinds = ("accumulate", "apply")
        new = not all(self.session.bound(kind, inputs) for kind in kinds)
        for kind in kinds:
            self.session.executable(kind, inputs)
        return new

    def poll(self) -> None:
        """Read totals and faults; this waits for the steps that were enqueued."""
        faults = self.session.faults()
        if faults:
            assert self.inputs is not None
            raise explain(self.session, self.inputs, faults, self._recent)
        self._recent.clear()
        totals = self.session.totals(reset=False)
        rate = self.samples / self.seconds if self.seconds else 0.0
        self.display.advance(self.shown_epoch, self.place.index, totals, rate)


def explain(session: Session, inputs: Inputs, faults: Faults, recent: Recent) -> PocketgradError:
    """The error that a fault on the device means; the state goes back to before that step."""
    step = faults.step
    tried = [(where, batch) for number, where, batch in recent if number == step]
    session.rewind(step)
    session.set_totals(Totals())
    if faults.label_step == step:
        for where, batch in tried:
            error = bad_label(session, inputs, batch, faults.label_position, where)
            if error is not None:
                return error
    for where, batch in tried:
        broken = broken_loss(session, inputs, batch, where)
        if broken is not None:
            return broken
    where = tried[-1][0] if tried else f"step {step}"
    return NumericsError(
        f"{where}: the device's loss is not finite, NumPy's is, for the same batch and weights; "
        "see `pocketgrad doctor`, or train with device='reference'"
    )


def evaluate(
    session: Session, feed: Feed, go_on: Callable[[], bool] = lambda: True
) -> Totals | None:
    """Totals over all batches of a feed; None when ``go_on`` said no. Training's totals stay."""
    before = session.totals()
    try:
        for batch in feed.epoch(0):
            inputs = inputs_of(batch.x, batch.y, feed.stored)
            session.evaluate(inputs, batch.x, batch.y, batch.weight)
            if not go_on():
                return None
        return session.totals(reset=False)
    finally:
        session.set_totals(before)
