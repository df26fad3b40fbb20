"""The loop in the user's hands: a training step as a function of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pocketgrad.backends.api import Backend
from pocketgrad.base.errors import DtypeError, ShapeError
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import Optimizer
from pocketgrad.nn.schedule import Schedule
from pocketgrad.train.batches import checked, inputs_of
from pocketgrad.train.step import LossFunction, Numerics, Stored
from pocketgrad.train.trainer import Trainer


class CompiledStep:
    """``step(x, y)`` trains on one batch and returns its loss; all else is in ``step.trainer``.

    Each type of batch gets its plan at the first call with it.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self._made_for: tuple[TensorType, TensorType] | None = None

    def __call__(self, x: Any, y: Any, weight: Any = None) -> float:
        """One step; ``weight`` has a number per sample, 0 for one that does not count."""
        batch = checked(x, y, weight)
        inputs = inputs_of(batch.x, batch.y, self.trainer.stored)
        found = (inputs.x, inputs.y)
        session = self.trainer.session
        if found != self._made_for:
            try:
                session.plan(session.train_kind(), inputs)
            except (ShapeError, DtypeError) as error:
                raise type(error)(self._misfit(found, error)) from None
            self._made_for = self._made_for or found
        return self.trainer.step(batch.x, batch.y, batch.weight)

    def _misfit(self, found: tuple[TensorType, TensorType], error: Exception) -> str:
        given = f"x {found[0]} and y {found[1]}"
        if self._made_for is None:
            return f"the model does not take a batch of {given}: {error}"
        return (
            f"expected batches like x {self._made_for[0]} and y {self._made_for[1]} "
            f"(of any size), found {given}: {error}"
        )


def compile_step(
    net: Module,
    loss: LossFunction | str = "cross_entropy",
    optimizer: Optimizer | None = None,
    device: str | Backend = "auto",
    *,
    schedule: Schedule | None = None,
    seed: int = 0,
    accumulate: int = 1,
    numerics: Numerics = "fast",
    mean: Sequence[float] = (0.0,),
    std: Sequence[float] = (1.0,),
) -> CompiledStep:
    """A function that trains on one batch; the device normalises x to (x - mean) / std."""
    trainer = Trainer(
        net,
        loss,
        optimizer,
        device,
        schedule=schedule,
        seed=seed,
        accumulate=accumulate,
        numerics=numerics,
    )
    trainer.stored = Stored(tuple(mean), tuple(std))
    return CompiledStep(trainer)
