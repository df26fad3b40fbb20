"""One call of fit: epochs with validation, history, callbacks and checkpoints between them.

An epoch is recorded when it is over, and a checkpoint can be made at any batch, so that what is
left after an interruption is always: record the finished epoch if it was not, train the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pocketgrad.base.errors import CheckpointError
from pocketgrad.engine import checkpoint
from pocketgrad.train.batches import Feed
from pocketgrad.train.callbacks import Callback
from pocketgrad.train.history import Epoch, History
from pocketgrad.train.loop import EpochRun, Interrupt, Position, evaluate
from pocketgrad.train.persist import require_same
from pocketgrad.train.progress import Display
from pocketgrad.train.session import Session, Totals
from pocketgrad.train.step import Inputs, has_classes


@dataclass
class Progress:
    """How far training has come; what a checkpoint holds beside the arrays."""

    history: History = field(default_factory=History)
    position: Position = field(default_factory=Position)
    first_epoch: int = 0  # of the fit in progress
    batches: int = 0  # trained on in all
    samples: int = 0  # trained on in the epoch in progress
    seconds: float = 0.0  # and for how long
    moved: int = 0  # bytes between host and device in all training steps
    stopped: str = ""  # why a callback ended the fit
    data: dict[str, Any] | None = None
    resumed: Path | None = None  # the checkpoint whose fit is to be finished

    def to_json(self) -> dict[str, Any]:
        """All of it but where it was resumed from."""
        return {
            "history": self.history.to_json(),
            "position": [self.position.epoch, self.position.index],
            "first_epoch": self.first_epoch,
            "batches": self.batches,
            "samples": self.samples,
            "seconds": self.seconds,
            "moved": self.moved,
            "stopped": self.stopped,
            "data": self.data,
        }

    @staticmethod
    def from_json(about: Mapping[str, Any], path: Path) -> Progress:
        """What ``to_json`` gave, to be continued."""
        names = ("first_epoch", "batches", "samples", "seconds", "moved", "stopped", "data")
        return Progress(
            History.from_json(about["history"]),
            Position(*about["position"]),
            **{name: about[name] for name in names},
            resumed=path,
        )


class Training(Protocol):
    """What a fit needs of the trainer."""

    progress: Progress
    callbacks: tuple[Callback, ...]

    @property
    def session(self) -> Session:
        """The device state."""

    @property
    def history(self) -> History:
        """All epochs so far."""

    @property
    def place(self) -> object:
        """Where it computes; printed."""

    def checkpoint(self, folder: Path) -> Path:
        """Write a checkpoint."""

    def stop(self, reason: str) -> None:
        """Make this the last epoch."""

    def save(self, path: str | Path) -> Path:
        """Write the weights."""

    def load(self, path: str | Path) -> None:
        """Read the weights."""


@dataclass(eq=False)
class Fit:
    """One fit."""

    trainer: Training
    feed: Feed
    epochs: int
    validation: Feed | None
    display: Display
    folder: Path | None
    every_s: float
    interrupt: Interrupt = field(default_factory=Interrupt)
    _inputs: Inputs | None = None
    _saved_at: float = 0.0
    _steps: int = 0

    def run(self) -> None:
        """Train; KeyboardInterrupt after Ctrl-C, when the state is saved."""
        progress = self.trainer.progress
        self._begin(progress)
        session = self.trainer.session
        end = progress.first_epoch + self.epochs
        self.display.begin(f"training on {self.trainer.place}", self.epochs, self.feed.per_epoch())
        try:
            with self.interrupt.caught():
                self._save()
                while self._unrecorded() or (
                    progress.position.epoch < end and not progress.stopped
                ):
                    if not (self._unrecorded() or self._train_epoch(session)):
                        self._leave()
                    if not self._record(session):
                        self._leave()
                    self._save()
                for callback in self.trainer.callbacks:
                    callback.on_end(self.trainer)
        finally:
            self.display.end()

    def _begin(self, progress: Progress) -> None:
        identity = self.feed.identity()
        if progress.resumed is not None:
            require_same(progress.resumed, {"data": progress.data}, {"data": identity})
            progress.resumed = None
        else:
            progress.first_epoch = progress.position.epoch
            progress.stopped = ""
            there = checkpoint.files(self.folder) if self.folder is not None else []
            if there and progress.batches < checkpoint.number(there[-1]):
                raise CheckpointError(
                    f"'{self.folder}' holds a checkpoint already ({there[-1].name}); "
                    "resume it, or choose another folder"
                )
        progress.data = identity

    def _unrecorded(self) -> bool:
        """Whether an epoch is over whose validation and callbacks are still to come."""
        progress = self.trainer.progress
        return progress.position.epoch > len(progress.history)

    def _train_epoch(self, session: Session) -> bool:
        progress = self.trainer.progress
        before = (progress.samples, progress.seconds, progress.moved)
        run = EpochRun(
            session,
            self.feed,
            progress.position,
            self.display,
            self.interrupt,
            lambda step: self._on_batch(run, step, *before),
            shown_epoch=progress.position.epoch - progress.first_epoch,
        )
        whole = run.run()
        self._count(run, *before)
        self._inputs = run.inputs or self._inputs
        return whole

    def _count(self, run: EpochRun, samples: int, seconds: float, moved: int) -> None:
        progress = self.trainer.progress
        progress.samples, progress.seconds = samples + run.samples, seconds + run.seconds
        progress.moved = moved + run.moved

    def _on_batch(self, run: EpochRun, step: int, samples: int, seconds: float, moved: int) -> None:
        self.trainer.progress.batches += 1
        self._count(run, samples, seconds, moved)
        for callback in self.trainer.callbacks:
            if callback.every and step % callback.every == 0:
                callback.on_step(self.trainer, step)
        if self.folder is not None and time.monotonic() - self._saved_at >= self.every_s:
            run.poll()  # never save the state of a fault
            self._save()

    def _record(self, session: Session) -> bool:
        """Validate, write history, call callbacks; False if interrupted before that is done."""
        progress = self.trainer.progress
        totals = session.totals(reset=False)
        validation: Totals | None = None
        if self.validation is not None:
            validation = evaluate(session, self.validation, lambda: not self.interrupt.asked)
            if validation is None:
                return False
        classes = self._inputs is not None and has_classes(session.spec, self._inputs)
        classes = classes or totals.correct > 0  # resumed after the epoch's last batch
        epoch = Epoch(
            len(progress.history),
            totals.mean_loss,
            totals.accuracy if classes else None,
            validation.mean_loss if validation else None,
            validation.accuracy if validation and classes else None,
            progress.samples / progress.seconds if progress.seconds else 0.0,
        )
        session.set_totals(Totals())
        progress.history = progress.history.then(epoch)
        progress.samples, progress.seconds = 0, 0.0
        self.display.epoch(epoch)
        for callback in self.trainer.callbacks:
            callback.on_epoch(self.trainer, epoch)
        if progress.stopped:
            self.display.note(f"stopped early: {progress.stopped}")
        return True

    def _save(self) -> None:
        if self.folder is not None:
            self.trainer.checkpoint(self.folder)
            self._saved_at = time.monotonic()

    def _leave(self) -> None:
        """After Ctrl-C: the step is finished, the state saved."""
        self._save()
        where = f"; saved in '{self.folder}', resume to go on" if self.folder else ""
        raise KeyboardInterrupt(f"after batch {self.trainer.progress.batches}{where}")
