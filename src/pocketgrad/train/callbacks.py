"""What happens between epochs and steps. A callback decides from the history alone, so that
training which was interrupted and resumed goes the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.train.history import MONITORS, Epoch, History


class Training(Protocol):
    """What a callback may rely on; a Trainer has more."""

    @property
    def history(self) -> History:
        """All epochs so far."""

    def stop(self, reason: str) -> None:
        """Make this the last epoch."""

    def save(self, path: str | Path) -> Any:
        """Write the weights."""

    def load(self, path: str | Path) -> Any:
        """Read the weights."""


class Callback:
    """Base: override what you need. ``every`` > 0 asks for ``on_step`` at each so many steps."""

    every = 0

    def on_step(self, trainer: Training, step: int) -> None:
        """After a step; reading the loss here waits for the device."""

    def on_epoch(self, trainer: Training, epoch: Epoch) -> None:
        """After an epoch and its validation; ``trainer.stop(reason)`` makes it the last."""

    def on_end(self, trainer: Training) -> None:
        """When training is done, not when it was interrupted."""


@dataclass
class EarlyStop(Callback):
    """Stop when the monitored number has not become better for ``patience`` epochs."""

    patience: int = 3
    monitor: str = "validation_loss"

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise SettingError(f"EarlyStop: patience must be 1 or more, got {self.patience}")
        _check_monitor(self.monitor)

    def on_epoch(self, trainer: Training, epoch: Epoch) -> None:
        _require(self.monitor, epoch)
        best = trainer.history.best(self.monitor)
        since = epoch.epoch - (best.epoch if best else 0)
        if since >= self.patience:
            trainer.stop(f"{self.monitor} has not improved for {since} epochs")


@dataclass
class KeepBest(Callback):
    """Save the weights of the best epoch to a file; ``restore`` loads them when training ends."""

    path: str | Path
    monitor: str = "validation_loss"
    restore: bool = True

    def __post_init__(self) -> None:
        _check_monitor(self.monitor)

    def on_epoch(self, trainer: Training, epoch: Epoch) -> None:
        _require(self.monitor, epoch)
        if trainer.history.best(self.monitor) == epoch:
            trainer.save(self.path)

    def on_end(self, trainer: Training) -> None:
        if self.restore and trainer.history.best(self.monitor) is not None:
            trainer.load(self.path)


def _check_monitor(monitor: str) -> None:
    if monitor not in MONITORS:
        raise UnknownNameError("quantity to monitor", monitor, MONITORS)


def _require(monitor: str, epoch: Epoch) -> None:
    if epoch.value(monitor) is None:
        raise SettingError(
            f"there is no {monitor} to monitor; pass validate= to fit(), "
            "or monitor 'loss' or 'accuracy'"
        )
