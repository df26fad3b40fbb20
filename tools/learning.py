"""The experiments of tools/learn: what is trained on what, and what counts as learned."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import pocketgrad as pg
from pocketgrad import tasks, zoo
from pocketgrad.nn.schedule import ConstantLR, CosineLR
from pocketgrad.train.augment import Augment
from pocketgrad.train.batches import inputs_of
from pocketgrad.train.step import Stored
from pocketgrad.train.trainer import Trainer

DAYS, PER_DAY, REPEATS = 17, 64, 5  # of the paper; passes over one day's images


@dataclass(frozen=True)
class Experiment:
    """One of them. ``least`` is the aim of ``measure``; None where a number says little."""

    aim: str
    model: str
    data: str
    epochs: int = 1
    batch: int = 64
    options: dict[str, Any] = field(default_factory=dict)  # of the model
    optimizer: str = ""
    lr: float | None = None
    augment: str = ""
    seed: int = 0
    measure: str = "test_accuracy"
    least: float | None = None
    picture: bool = False
    kind: str = "fit"


def _cifar(model: str, **more: Any) -> dict[str, Experiment]:
    """Three seeds of a model of images on CIFAR-10."""
    return {
        f"{model}-cifar10-{seed}": Experiment(
            f"{model} on CIFAR-10, seed {seed}", model, "cifar10", epochs=5, seed=seed,
            augment="flip,crop:4", **more,
        )
        for seed in range(3)
    }  # fmt: skip


def _large(model: str, data: str) -> dict[str, Experiment]:
    """Twenty steps of a large model at three batch sizes."""
    return {
        f"{model}-20-steps-{batch}": Experiment(
            f"20 steps of {model}, batch {batch}: the loss falls", model, data, batch=batch,
            kind="steps", measure="fall",
        )
        for batch in (1, 4, 16)
    }  # fmt: skip


EXPERIMENTS: dict[str, Experiment] = {
    "lenet5-mnist": Experiment(
        "LeNet-5 on MNIST: 99 %", "lenet5", "mnist", epochs=12, least=0.99
    ),
    "lenet5-fashion": Experiment(
        "LeNet-5 on Fashion-MNIST: 90 %", "lenet5", "fashion_mnist", epochs=20, lr=0.05,
        least=0.90,
    ),
    "char-lstm-sonnets": Experiment(
        "char-LSTM (width 1/2) on the sonnets: bits per character", "char-lstm", "shakespeare",
        epochs=15, options={"width": 0.5}, lr=3e-3, measure="bits_per_character",
    ),
    "seq2seq-reversal": Experiment(
        "seq2seq (width 1/4) translates 99 % without a mistake", "seq2seq", "reversal", epochs=40,
        options={"width": 0.25, "drop": 0.0}, lr=3e-3, measure="exact", least=0.99,
    ),
    "bert-tiny-spans": Experiment(
        "BERT-tiny finds 99 % of the answers", "bert-tiny", "spans", epochs=40,
        options={"drop": 0.0}, measure="exact", least=0.99,
    ),
    "dqn-cartpole": Experiment(
        "DQN balances CartPole: 475 of 500", "dqn-vector", "cartpole", epochs=40, lr=5e-4,
        measure="mean_return", least=475.0,
    ),
    "dcgan-fashion": Experiment(
        "DCGAN (width 1/2) draws clothes", "dcgan-generator", "embedded", epochs=6,
        options={"width": 0.5}, measure="test_loss", picture=True,
    ),
    **_cifar("densenet40"),
    **_cifar("reduced-mobilenet"),
    **_cifar("reduced-resnet"),
    **_large("vgg19", "cifar10"),
    **_large("resnet101", "cifar10"),
    **_large("resnet152", "cifar10"),
    **_large("densenet100", "cifar10"),
    **_large("seq2seq", "reversal"),
    **_large("bert-base", "spans"),
    **{
        f"daily-densenet40-{batch}": Experiment(
            f"64 new images a day for {DAYS} days, batch {batch}", "densenet40", "cifar10",
            epochs=5, batch=batch, kind="daily", measure="gain",
        )
        for batch in (16, 32, 64)
    },
}  # fmt: skip


def perform(name: str, device: str, work: Path, results: Path) -> dict[str, Any]:
    """Run one experiment; what came of it, for JSON."""
    wanted = EXPERIMENTS[name]
    card = zoo.card(wanted.model)
    task = tasks.task_of(card)
    source = task.load(wanted.data)
    trainer = _trainer(wanted, device, source)
    kinds: dict[str, Callable[..., dict[str, Any]]] = {
        "fit": _fit,
        "steps": _steps,
        "daily": _daily,
    }
    begun = time.perf_counter()
    found = kinds[wanted.kind](wanted, trainer, source, work)
    if wanted.picture:
        results.mkdir(exist_ok=True)
        task.samples(trainer, source, results / f"{name}.png")
    elif wanted.kind == "fit":
        found["samples"] = task.samples(trainer, source, None)
    return {
        "experiment": asdict(wanted),
        "device": str(trainer.place),
        "seconds_of_this_run": round(time.perf_counter() - begun, 1),
        "peak_bytes": trainer.session.allocated_nbytes,
        "version": pg.__version__,
        "numpy": np.__version__,
        **found,
    }


def _trainer(wanted: Experiment, device: str, source: Any) -> Trainer:
    card = zoo.card(wanted.model)
    task = tasks.task_of(card)
    steps = task.steps(source, wanted.batch) * wanted.epochs
    cosine = task.schedule == "cosine" and wanted.kind == "fit"
    trainer = Trainer(
        task.model(card, source, **wanted.options),
        task.loss_for(source),
        task.optimizer(wanted.optimizer or task.optimizer_name, wanted.lr),
        device,
        schedule=CosineLR(steps) if cosine else ConstantLR(),
        seed=wanted.seed,
        augment=Augment.parse(wanted.augment) if wanted.augment else None,
    )
    task.prepare(trainer, source)
    return trainer


def _fit(wanted: Experiment, trainer: Trainer, source: Any, work: Path) -> dict[str, Any]:
    from pocketgrad.engine.checkpoint import files

    if work.exists() and files(work):
        trainer.resume(work)
    history = trainer.fit(source, wanted.epochs, wanted.batch, checkpoint=work)
    measured = tasks.task_of(zoo.card(wanted.model)).measure(trainer, source)
    return {"result": measured, "history": history.to_json()}


def _steps(wanted: Experiment, trainer: Trainer, source: Any, work: Path) -> dict[str, Any]:
    """Twenty steps on one batch, so that the loss has to fall; the first one builds the kernels."""
    batch = source.loader(wanted.batch).batch_at(0, 0)
    stored = Stored.of(source)
    inputs = inputs_of(batch.x, batch.y, stored)
    losses, seconds = [], []
    for _ in range(20):
        begun = time.perf_counter()
        trainer.session.train(inputs, batch.x, batch.y, batch.weight)
        losses.append(trainer.session.loss())
        seconds.append(round(time.perf_counter() - begun, 4))
    result = {
        "fall": losses[0] - losses[-1],
        "step_s": float(np.median(seconds[1:])),
        "first_step_s": seconds[0],
    }
    return {"result": result, "losses": losses, "seconds": seconds}


def _daily(wanted: Experiment, trainer: Trainer, source: Any, work: Path) -> dict[str, Any]:
    """Pre-train on all but the images of the coming days, then learn each day's with its batch."""
    new = source.subset(DAYS * PER_DAY, seed=7)
    rows = np.setdiff1d(np.arange(len(source)), _rows_of(source, DAYS * PER_DAY))
    trainer.fit(source.rows(rows), wanted.epochs, 64, checkpoint=work)
    accuracy = [trainer.evaluate(source.test).accuracy or 0.0]
    trainer.lr = trainer.lr / 10
    for day in range(DAYS):
        today = new.rows(np.arange(day * PER_DAY, (day + 1) * PER_DAY))
        for _ in range(REPEATS):
            for b in today.loader(wanted.batch, seed=day):
                trainer.step(b.x, b.y)
        accuracy.append(trainer.evaluate(source.test).accuracy or 0.0)
    return {"result": {"gain": accuracy[-1] - accuracy[0]}, "accuracy": accuracy}


def _rows_of(source: Any, n: int) -> Any:
    """Those that ``subset(n, seed=7)`` takes."""
    from pocketgrad.data.batch import permutation

    return permutation(len(source), 7, 0)[:n]
