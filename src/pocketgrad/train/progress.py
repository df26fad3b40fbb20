"""Training seen live: a bar on a terminal, a line per epoch elsewhere, nothing when not wanted.

Drawn to standard error, so that results on standard output stay clean. rich is imported only here.
"""

from __future__ import annotations

import sys
from typing import Protocol

from pocketgrad.train.history import Epoch
from pocketgrad.train.session import Totals


class Display(Protocol):
    """What the loop tells."""

    def begin(self, text: str, epochs: int, per_epoch: int | None) -> None:
        """Training starts; ``text`` says what and where."""

    def advance(self, epoch: int, batches: int, totals: Totals, samples_per_s: float) -> None:
        """So far in this epoch; a few times a second."""

    def epoch(self, epoch: Epoch) -> None:
        """An epoch is done."""

    def note(self, text: str) -> None:
        """Something a reader should know."""

    def end(self) -> None:
        """Training is over, well or not."""


def display(progress: bool | Display) -> Display:
    """The one given, or the one that fits where standard error goes."""
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return Silent()
    return Live() if sys.stderr.isatty() else Lines()


def line(epoch: Epoch) -> str:
    """An epoch in one line."""
    parts = [f"epoch {epoch.epoch + 1}: loss {epoch.loss:.4f}"]
    if epoch.accuracy is not None:
        parts.append(f"accuracy {epoch.accuracy:.4f}")
    if epoch.validation_loss is not None:
        parts.append(f"validation loss {epoch.validation_loss:.4f}")
    if epoch.validation_accuracy is not None:
        parts.append(f"accuracy {epoch.validation_accuracy:.4f}")
    return ", ".join([*parts, f"{epoch.samples_per_s:,.0f} samples/s"])


class Silent:
    """Shows nothing."""

    def begin(self, text: str, epochs: int, per_epoch: int | None) -> None:
        """Nothing."""

    def advance(self, epoch: int, batches: int, totals: Totals, samples_per_s: float) -> None:
        """Nothing."""

    def epoch(self, epoch: Epoch) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class Lines(Silent):
    """A line per epoch, for logs."""

    def begin(self, text: str, epochs: int, per_epoch: int | None) -> None:
        self.note(text)

    def epoch(self, epoch: Epoch) -> None:
        self.note(line(epoch))

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class Live:
    """A bar over all epochs with loss, accuracy, samples per second and time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._per_epoch: int | None = None
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=Console(stderr=True),
            refresh_per_second=5,
        )
        self._task = self._progress.add_task("", total=None, numbers="")

    def begin(self, text: str, epochs: int, per_epoch: int | None) -> None:
        self._per_epoch, self._epochs = per_epoch, epochs
        total = epochs * per_epoch if per_epoch else None
        self._progress.update(self._task, total=total, description="building kernels")
        self.note(text)
        self._progress.start()

    def advance(self, epoch: int, batches: int, totals: Totals, samples_per_s: float) -> None:
        numbers = f"loss {totals.mean_loss:.4f}"
        if totals.correct:
            numbers += f"  accuracy {totals.accuracy:.4f}"
        done = (epoch * self._per_epoch if self._per_epoch else 0) + batches
        self._progress.update(
            self._task,
            completed=done,
            description=f"epoch {epoch + 1}/{self._epochs}",
            numbers=f"{numbers}  {samples_per_s:,.0f} samples/s",
        )

    def epoch(self, epoch: Epoch) -> None:
        self.note(line(epoch))

    def note(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)

    def end(self) -> None:
        self._progress.stop()
