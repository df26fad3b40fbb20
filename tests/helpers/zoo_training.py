"""Some steps of a small model of the zoo on one device: losses, first gradients, what was learned.

The loss is the mean square of all outputs: it needs no target and every output counts. Inputs of
equal type are stacked, as data sets stack them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgrad.backends import open_backend
from pocketgrad.base.dtypes import Array
from pocketgrad.ir.core import Value
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import SGD
from pocketgrad.ops.arithmetic import add, mul
from pocketgrad.ops.extremes import mean
from pocketgrad.train.batches import inputs_of
from pocketgrad.train.session import Session
from pocketgrad.train.step import StepSpec, Stored

STEPS, RATE, MOMENTUM = 3, 0.01, 0.9


@dataclass(frozen=True)
class Trained:
    """What came of it."""

    losses: tuple[float, ...]
    gradients: dict[str, Array]  # of the first step
    before: dict[str, Array]
    after: dict[str, Array]
    peak_nbytes: int


def squares(outputs: Any, y: Value, weight: Value) -> Value:
    """The sum over outputs of their mean square."""
    first, *rest = outputs if isinstance(outputs, tuple) else (outputs,)
    total = mean(mul(first, first))
    for other in rest:
        total = add(total, mean(mul(other, other)))
    return total


def trained(net: Module, inputs: Sequence[Array], device: str, steps: int = STEPS) -> Trained:
    """So many steps of gradient descent with momentum from the model's numbers."""
    x = inputs[0] if len(inputs) == 1 else np.stack(inputs, axis=1)
    y, weight = np.zeros((len(x), 1), np.float32), np.ones(len(x), np.float32)
    types = inputs_of(x, y, Stored(parts=len(inputs)))
    spec = StepSpec(net, squares, SGD(RATE, momentum=MOMENTUM))
    session = Session(spec, open_backend(device), seed=3)
    before = session.arrays()
    losses: list[float] = []
    gradients: dict[str, Array] = {}
    for step in range(steps):
        session.train(types, x, y, weight)
        losses.append(session.loss())
        gradients = gradients or session.gradients()
        assert not session.faults(), step
    return Trained(tuple(losses), gradients, before, session.arrays(), session.allocated_nbytes)


def apart(found: dict[str, Array], wanted: dict[str, Array]) -> float:
    """The size of the difference of two sets of arrays, relative to the size of the second."""
    assert found.keys() == wanted.keys()
    difference = sum(float(np.square(found[n].astype(np.float64) - wanted[n]).sum()) for n in found)
    size = sum(float(np.square(wanted[n].astype(np.float64)).sum()) for n in found)
    return float(np.sqrt(difference / size)) if size else float(np.sqrt(difference))
