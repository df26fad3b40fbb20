"""Training sessions over named models with made-up batches, for tests of the core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pocketgrad import zoo
from pocketgrad.backends.api import Backend
from pocketgrad.base.dtypes import Array, float32, int64
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import SGD, Optimizer
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, StepSpec

Batch = tuple[Array, Array, Array]


def model_named(name: str) -> tuple[Module, tuple[int, ...], int]:
    """A model of the zoo, the shape of one of its inputs, its classes."""
    card = zoo.card(name)
    return card.build(), card.input.shape, card.classes


def session_of(
    model: Module, backend: Backend, optimizer: Optimizer | None = None, seed: int = 0
) -> Session:
    """A session with cross-entropy; SGD with momentum by default."""
    optimizer = optimizer or SGD(0.01, momentum=0.9)
    return Session(StepSpec(model, "cross_entropy", optimizer), backend, seed)


def inputs_for(shape: tuple[int, ...], batch: int) -> Inputs:
    """Types of a batch of float images with integer labels."""
    return Inputs(TensorType((batch, *shape), float32), TensorType((batch,), int64))


def batches(shape: tuple[int, ...], classes: int, batch: int, seed: int = 0) -> Iterator[Batch]:
    """Endless learnable batches: each class has a pattern, the images are noisy copies of it."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((classes, *shape))
    while True:
        y = rng.integers(0, classes, batch)
        x = patterns[y] + 0.7 * rng.standard_normal((batch, *shape))
        yield x.astype(np.float32), y.astype(np.int64), np.ones(batch, np.float32)


def train(session: Session, source: Iterator[Batch], inputs: Inputs, steps: int) -> list[float]:
    """Run steps; the loss of each."""
    losses = []
    for _ in range(steps):
        session.train(inputs, *next(source))
        losses.append(session.loss())
    return losses
