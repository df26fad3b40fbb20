"""The loop in the user's hands: a training step as a function of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgrad.backends.api import Backend
from pocketgrad.base.errors import DataError, DtypeError, SettingError, ShapeError
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import Optimizer
from pocketgrad.nn.schedule import Schedule
from pocketgrad.train.batches import Batch, checked, inputs_of
from pocketgrad.train.loop import Recent, explain
from pocketgrad.train.resident import Resident
from pocketgrad.train.step import Inputs, LossFunction, Numerics, Stored
from pocketgrad.train.trainer import Trainer


@dataclass(frozen=True, eq=False)
class ResidentBatches:
    """Batches on the device, and the arrays they came from."""

    resident: Resident
    batches: tuple[Batch, ...]

    def __len__(self) -> int:
        return len(self.batches)


class CompiledStep:
    """``step(x, y)`` trains on one batch and returns its loss; all else is in ``step.trainer``.

    Each type of batch gets its plan at the first call with it. Batches that are used again can stay
    on the device: ``data = step.upload(batches); step.train(data); step.loss()``.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self._made_for: tuple[TensorType, TensorType] | None = None
        self._pending: list[tuple[ResidentBatches, range]] = []  # not known to have gone well
        self._micro = 0  # micro-steps before the first of them

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
        return self.trainer.train_on(batch, inputs)

    # ---- without waiting ------------------------------------------------------------------------

    def upload(self, batches: Iterable[Any]) -> ResidentBatches:
        """Batches (x, y) or (x, y, weight) of one size, copied to the device to stay there."""
        found = [checked(*batch) for batch in batches]
        if not found:
            raise DataError("there is no batch to upload; pass a list of (x, y)")
        inputs = inputs_of(found[0].x, found[0].y, self.trainer.stored)
        for i, batch in enumerate(found):
            other = inputs_of(batch.x, batch.y, self.trainer.stored)
            if other != inputs:
                raise ShapeError(
                    f"batch {i} is x {other.x} and y {other.y}, the first x {inputs.x} and "
                    f"y {inputs.y}; upload batches of different types apart"
                )
        session = self.trainer.session
        feeds = {name: np.stack([getattr(b, name) for b in found]) for name in ("x", "y", "weight")}
        return ResidentBatches(session.upload(inputs, feeds), tuple(found))

    def train(self, data: ResidentBatches, first: int = 0, count: int | None = None) -> None:
        """A step on each of ``count`` resident batches, all if not given; returns before they end.

        Nothing is moved. ``loss()`` waits, and tells if anything went wrong.
        """
        many = len(data) - first if count is None else count
        if first < 0 or many < 0 or first + many > len(data):
            raise SettingError(
                f"batches {first} to {first + many} of {len(data)} resident ones were asked for; "
                "choose them within what was uploaded"
            )
        if not self._pending:
            self._micro = self.trainer.session.micro
        self._pending.append((data, range(first, first + many)))
        self.trainer.session.train_on(data.resident, first, many)

    def loss(self) -> float:
        """The loss of the latest step, when it is done; the error of the first that went wrong."""
        session = self.trainer.session
        loss, faults = session.loss(), session.faults()
        if faults:
            inputs, tried = self._tried(faults.step)
            raise explain(session, inputs, faults, tried)
        self._pending.clear()
        return loss

    def _tried(self, step: int) -> tuple[Inputs, Recent]:
        """The batches that were trained on at a step, with their type."""
        every = self.trainer.session.spec.accumulate
        batches = [(data, i) for data, chosen in self._pending for i in chosen]
        self._pending.clear()
        made = (self._micro + len(batches)) // every
        start = int(self.trainer.session.read_state("step")) - made
        found: Recent = []
        inputs = batches[-1][0].resident.inputs
        for k, (data, i) in enumerate(batches):
            if start + (self._micro + k) // every == step:
                inputs = data.resident.inputs
                found.append((step, f"step {step}, resident batch {i}", data.batches[i]))
        return inputs, found

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
