"""What a task says: its data, model, loss and optimizer, and how the trained model is judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from pocketgrad import data
from pocketgrad.base.errors import DataError, SettingError, UnknownNameError
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import ALL as OPTIMIZERS
from pocketgrad.nn.optim import SGD, Optimizer
from pocketgrad.train.step import LossFunction
from pocketgrad.train.trainer import Trainer
from pocketgrad.zoo.registry import ModelCard

Source = Any  # a data set, or experience in an environment: what Trainer.fit takes

RATES = {"adam": 1e-3, "adamw": 1e-3, "rmsprop": 1e-3, "sgd": 0.03}
MOMENTUM = 0.9  # of sgd
HELD_OUT = 10  # where a data set has no test part, one sample in so many is kept for it


class Task(ABC):
    """Base. The class attributes are what `pocketgrad train` does where nothing else is asked."""

    usual: ClassVar[str] = "embedded"  # data
    optimizer_name: ClassVar[str] = "adam"
    schedule: ClassVar[str] = "cosine"
    clip_norm: ClassVar[float | None] = None

    def load(self, name: str, note: Callable[[str], object] = str) -> Source:
        """The data of that name or path; what is done to have a test part goes to ``note``."""
        found = data.load(name)
        if found.held_out is None:
            n = max(1, len(found) // HELD_OUT)
            note(f"data set '{found.name}' has no test part: {n} of its samples are kept back")
            found = found.hold_out(n)
        return self.fitting(found)

    def fitting(self, source: data.Dataset) -> Source:
        """The data set as models of this task take it; an error where they cannot."""
        return source

    @abstractmethod
    def model(self, card: ModelCard, source: Source, **options: Any) -> Module:
        """The model for the data: as many classes, channels, words or actions as they have."""

    def loss_for(self, source: Source) -> LossFunction | str:
        """The loss on those data."""
        return "cross_entropy"

    def optimizer(self, name: str, rate: float | None = None) -> Optimizer:
        """The optimizer of that name."""
        if name not in OPTIMIZERS:
            raise UnknownNameError("optimizer", name, OPTIMIZERS)
        lr = RATES[name] if rate is None else rate
        if name == "sgd":
            return SGD(lr, momentum=MOMENTUM, clip_norm=self.clip_norm)
        return OPTIMIZERS[name](lr, clip_norm=self.clip_norm)

    def steps(self, source: Source, batch: int) -> int:
        """Batches in an epoch."""
        return len(source.loader(batch))

    def prepare(self, trainer: Trainer, source: Source) -> None:  # noqa: B027  # mostly nothing
        """What is to be done between making the trainer and fitting it."""

    def measure(self, trainer: Trainer, source: Source) -> dict[str, Any]:
        """The results on the test part: test_loss, test_accuracy, and what else the task has."""
        found = trainer.evaluate(source.test)
        return {"test_loss": found.loss, "test_accuracy": found.accuracy}

    def samples(self, trainer: Trainer, source: Source, path: Path | None) -> list[str]:
        """A few lines that show what was learned; pictures go to ``path``."""
        if path is not None:
            raise SettingError(f"--picture {path}: only models that generate images write one")
        return []

    @abstractmethod
    def predict(self, trainer: Trainer, source: Source, path: Path) -> list[str]:
        """A line for each thing in a file of the user's."""


def lines_of(path: Path) -> list[str]:
    """The lines of a text file that say something."""
    found = [line for line in data.read_text(path).splitlines() if line.strip()]
    if not found:
        raise DataError(f"'{path}' is empty; give one input per line")
    return found


def require(source: data.Dataset, fits: bool, expected: str) -> None:
    """DataError where a data set is not of the kind a task needs."""
    if not fits:
        raise DataError(
            f"data set '{source.name}' holds {source.x.dtype} {list(source.sample_shape)} samples "
            f"in {source.parts} part{'s' * (source.parts > 1)}, expected {expected}"
        )
