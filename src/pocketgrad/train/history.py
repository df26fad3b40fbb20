"""What training has reached, epoch by epoch; never changed, only replaced by a longer one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from pocketgrad.base.errors import UnknownNameError

MONITORS = ("loss", "accuracy", "validation_loss", "validation_accuracy")


@dataclass(frozen=True)
class Epoch:
    """One epoch. Accuracy is None without classes, validation where none was asked for."""

    epoch: int
    loss: float
    accuracy: float | None
    validation_loss: float | None
    validation_accuracy: float | None
    samples_per_s: float

    def value(self, monitor: str) -> float | None:
        """The number of that name, one of MONITORS."""
        if monitor not in MONITORS:
            raise UnknownNameError("quantity to monitor", monitor, MONITORS)
        found: float | None = getattr(self, monitor)
        return found


@dataclass(frozen=True)
class History:
    """All epochs so far, in order."""

    epochs: tuple[Epoch, ...] = ()

    def __len__(self) -> int:
        return len(self.epochs)

    def __iter__(self) -> Iterator[Epoch]:
        return iter(self.epochs)

    def __getitem__(self, index: int) -> Epoch:
        return self.epochs[index]

    def then(self, epoch: Epoch) -> History:
        """With one more epoch."""
        return History((*self.epochs, epoch))

    def best(self, monitor: str) -> Epoch | None:
        """The first epoch with the best value: highest for an accuracy, lowest for a loss."""
        known = [(e, v) for e in self.epochs if (v := e.value(monitor)) is not None and isfinite(v)]
        if not known:
            return None
        sign = -1.0 if monitor.endswith("accuracy") else 1.0
        return min(known, key=lambda pair: sign * pair[1])[0]

    def to_json(self) -> list[dict[str, Any]]:
        """As a list of objects."""
        return [asdict(epoch) for epoch in self.epochs]

    @staticmethod
    def from_json(epochs: Sequence[Mapping[str, Any]]) -> History:
        """What ``to_json`` gave."""
        return History(tuple(Epoch(**epoch) for epoch in epochs))
