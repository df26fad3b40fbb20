"""Trainer: a model, a loss, an optimizer and a device; trains, measures, predicts, saves.

It ties the parts together; the step is in ``step``, the device state in ``session``, the loop in
``loop`` and ``fitting``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad.backends.api import Backend
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.engine import checkpoint
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import SGD, Optimizer
from pocketgrad.nn.schedule import ConstantLR, Schedule
from pocketgrad.plan.summary import PlanSummary
from pocketgrad.train import persist
from pocketgrad.train.augment import Augment
from pocketgrad.train.batches import (
    Batch,
    as_input,
    check_batch,
    checked,
    feed_of,
    inputs_of,
    padded,
)
from pocketgrad.train.callbacks import Callback
from pocketgrad.train.device import LOG, open_place
from pocketgrad.train.fitting import Fit, Progress
from pocketgrad.train.history import History
from pocketgrad.train.inspection import activations
from pocketgrad.train.loop import evaluate, explain
from pocketgrad.train.metrics import Metric
from pocketgrad.train.preview import expect, preview
from pocketgrad.train.progress import Display, display
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, LossFunction, Numerics, StepSpec, Stored, has_classes

BATCH = 64


@dataclass(frozen=True)
class Evaluation:
    """What a data set gave. Accuracy is None where the targets are not classes."""

    loss: float
    accuracy: float | None
    samples: int
    metrics: Mapping[str, float] = field(default_factory=dict)


class Trainer:
    """Trains ``net`` on a device. Nothing is allocated there before the first use."""

    def __init__(
        self,
        net: Module,
        loss: LossFunction | str = "cross_entropy",
        optimizer: Optimizer | None = None,
        device: str | Backend = "auto",
        *,
        schedule: Schedule | None = None,
        seed: int = 0,
        accumulate: int = 1,
        numerics: Numerics = "fast",
        augment: Augment | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        check_batch(1, seed)
        if accumulate < 1:
            raise SettingError(f"accumulate {accumulate}: choose 1 (no accumulation) or more")
        self.net, self.seed, self.callbacks = net, seed, tuple(callbacks)
        self.optimizer = optimizer or SGD(0.05)
        self._loss, self._schedule = loss, schedule or ConstantLR()
        self._accumulate, self._numerics, self._augment = accumulate, numerics, augment
        self.spec = self._new_spec()
        self.spec.loss_function()  # an unknown name is told at once
        self.place = open_place(device)
        self.progress = Progress()
        self.stored = Stored()  # of the samples seen in training
        self.batch = BATCH
        self._session: Session | None = None

    def _new_spec(self) -> StepSpec:
        return StepSpec(
            self.net,
            self._loss,
            self.optimizer,
            self._schedule,
            self._accumulate,
            self._numerics,
            self._augment,
        )

    @property
    def session(self) -> Session:
        """The state on the device, made at the first use."""
        if self._session is None:
            self._session = Session(self.spec, self.place.backend, self.seed)
        return self._session

    @property
    def history(self) -> History:
        """All epochs so far, with those before a checkpoint was resumed."""
        return self.progress.history

    @property
    def device(self) -> str:
        """The device in use."""
        return self.place.backend.name

    # ---- training -------------------------------------------------------------------------------

    def plan(self, batch: int = BATCH, sample: Any = None) -> PlanSummary:
        """Launches, peak memory by kind and arithmetic of a training step; runs nothing.

        ``sample``: a data set, a batch (x, y), or the shape of one sample; guessed if not given.
        """
        check_batch(batch, self.seed)
        expected = expect(self.spec, batch, sample)
        title = (
            f"training step of {type(self.net).__name__}, batch {batch}, on {self.place} "
            f"[{self.place.why}]\nx {expected.inputs.x}, y {expected.inputs.y} ({expected.source})"
        )
        return preview(self.session, expected, title)

    def fit(
        self,
        dataset: Any,
        epochs: int = 1,
        batch: int = BATCH,
        validate: Any = None,
        progress: bool | Display = True,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_every_s: float = 30.0,
    ) -> History:
        """Train for so many epochs; after ``resume``, what is left of them.

        ``dataset``: a data set, a Loader, or batches (x, y). With ``checkpoint`` a folder, training
        is saved there after every epoch and every so many seconds, and when Ctrl-C ends it.
        """
        check_batch(batch, self.seed)
        if epochs < 0:
            raise SettingError(f"epochs {epochs}: choose 0 or more")
        feed = feed_of(dataset, batch, self.seed)
        self.batch, self.stored = batch, feed.stored
        folder = None if checkpoint is None else Path(checkpoint)
        held_out = None if validate is None else feed_of(validate, batch, shuffle=False)
        fit = Fit(self, feed, epochs, held_out, display(progress), folder, checkpoint_every_s)
        fit.run()
        self.session.store_model()
        return self.history

    def step(self, x: Any, y: Any, weight: Any = None) -> float:
        """One training step on one batch; its loss."""
        batch = checked(x, y, weight)
        return self.train_on(batch, inputs_of(batch.x, batch.y, self.stored))

    def train_on(self, batch: Batch, inputs: Inputs) -> float:
        """One training step on a batch that was looked at; its loss."""
        session = self.session
        session.train(inputs, batch.x, batch.y, batch.weight)
        loss = session.loss()
        faults = session.faults()
        if faults:
            raise explain(session, inputs, faults, [(faults.step, f"step {faults.step}", batch)])
        return loss

    def stop(self, reason: str) -> None:
        """Called by a callback: make this the last epoch."""
        self.progress.stopped = reason

    # ---- use ------------------------------------------------------------------------------------

    def evaluate(
        self, dataset: Any, batch: int | None = None, metrics: Mapping[str, Metric] | None = None
    ) -> Evaluation:
        """Loss, accuracy and any other metrics (``train.metrics``) over a data set."""
        feed = feed_of(dataset, batch or self.batch, shuffle=False)
        totals = evaluate(self.session, feed)
        assert totals is not None
        classes = False
        scores, targets = [], []
        for b in feed.epoch(0):
            inputs = inputs_of(b.x, b.y, feed.stored)
            classes = has_classes(self.spec, inputs)
            if not metrics:
                break
            scores.append(self.session.predict(inputs, b.x)[: b.count])
            targets.append(b.y[: b.count])
        found = {
            name: float(metric(np.concatenate(scores), np.concatenate(targets)))
            for name, metric in (metrics or {}).items()
        }
        accuracy = totals.accuracy if classes else None
        return Evaluation(totals.mean_loss, accuracy, round(totals.weight), found)

    def predict(self, x: Any) -> Array:
        """The model's output for any number of samples, in evaluation mode.

        Samples are normalised as in training.
        """
        samples = as_input("x", x)
        found = []
        for start in range(0, len(samples), self.batch):
            rows = samples[start : start + self.batch]
            whole = padded(rows, self.batch)
            inputs = inputs_of(whole, np.empty(self.batch, np.int32), self.stored)
            found.append(self.session.predict(inputs, whole)[: len(rows)])
        return np.concatenate(found)

    # ---- arrays ---------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Array]:
        """Copies of all parameters by name."""
        names = {name for name, _ in self.net.named_parameters()}
        return {name: a for name, a in self.session.arrays().items() if name in names}

    def buffers(self) -> dict[str, Array]:
        """Copies of all buffers, such as running statistics, by name."""
        names = {name for name, _ in self.net.named_buffers()}
        return {name: a for name, a in self.session.arrays().items() if name in names}

    def gradients(self) -> dict[str, Array]:
        """The gradients of the latest training step by parameter name; frozen ones have none."""
        return self.session.gradients()

    def activations(self, x: Any, names: str | Sequence[str]) -> dict[str, Array]:
        """What layers give for a batch, in evaluation mode, by the layers' names."""
        samples = as_input("x", x)
        inputs = inputs_of(samples, np.empty(len(samples), np.int32), self.stored)
        wanted = [names] if isinstance(names, str) else list(names)
        return activations(self.session, inputs, samples, wanted)

    def set_parameter(self, name: str, array: Any) -> None:
        """Replace one parameter or buffer; the plan stays."""
        self.session.set_array(name, np.asarray(array))

    @property
    def lr(self) -> float:
        """The learning rate that the schedule scales; setting it needs no new plan."""
        return float(self.session.read_state("lr"))

    @lr.setter
    def lr(self, value: float) -> None:
        if not 0 <= value < float("inf"):
            raise SettingError(f"lr {value}: choose a number of 0 or more")
        self.session.write_state("lr", np.asarray(value, np.float32))

    def freeze(self, pattern: str) -> list[str]:
        """Stop training the parameters whose names match (``features.*``); their names."""
        return self._set_trainable(pattern, False)

    def unfreeze(self, pattern: str) -> list[str]:
        """Train them again; their optimizer state starts at zero."""
        return self._set_trainable(pattern, True)

    def _set_trainable(self, pattern: str, trainable: bool) -> list[str]:
        parameters = dict(self.net.named_parameters())
        names = [name for name in parameters if fnmatchcase(name, pattern)]
        if not names:
            raise UnknownNameError("parameter", pattern, parameters)
        for name in names:
            parameters[name].trainable = trainable
        self.spec = self._new_spec()
        if self._session is not None:  # a new plan over the same state
            state, traffic = self._session.export(), self._session.traffic
            self._session = None  # its memory goes before the new one comes
            self.session.restore(state)
            self.session.traffic = traffic
        return names

    # ---- saving ---------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the weights as safetensors, under PyTorch's names."""
        self.session.store_model()
        persist.save_weights(Path(path), self.net, self.stored)
        return Path(path)

    def load(self, path: str | Path, strict: bool = True) -> None:
        """Read weights; ``strict=False`` takes what fits by name (shapes must always fit)."""
        arrays, normalisation = persist.load_weights(Path(path))
        self.net.load_state_dict(arrays, strict)
        self.session.load_model()
        if normalisation is not None:
            self.stored = replace(self.stored, mean=normalisation[0], std=normalisation[1])

    def checkpoint(self, folder: str | Path) -> Path:
        """Write all that training needs to go on; the last two are kept."""
        about = self.progress.to_json() | {
            "identity": persist.identity(self.spec, self.seed),
            "device": self.device,
            "versions": persist.versions(),
            **self.stored.to_json(),
        }
        return checkpoint.save(Path(folder), self.progress.batches, self.session.export(), about)

    def resume(self, folder: str | Path) -> Path:
        """Take up the newest whole checkpoint; the next ``fit`` does what was left of its epochs.

        Refused when model, loss, optimizer, schedule or seed differ; ``fit`` refuses other data.
        """
        saved = checkpoint.latest(Path(folder))
        for reason in saved.skipped:
            LOG.warning("%s; an older checkpoint is used", reason)
        now = persist.identity(self.spec, self.seed)
        persist.require_same(saved.path, saved.about["identity"], now)
        if saved.about["device"] != self.device:
            LOG.warning(
                "the checkpoint was made on %s: on %s training goes on, not bit by bit the same",
                saved.about["device"],
                self.device,
            )
        self.session.restore(saved.arrays)
        self.session.store_model()
        self.stored = Stored.from_json(saved.about)
        self.progress = Progress.from_json(saved.about, saved.path)
        return saved.path
