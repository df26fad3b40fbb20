"""Launches bundled into enqueues compute the same bits as each alone, in the order of the steps."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.training import same

from pocketgrad import nn, zoo
from pocketgrad.backends import open_backend
from pocketgrad.backends.api import stages
from pocketgrad.base.dtypes import Array, int32
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.optim import SGD
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, StepSpec

NETS = {
    "model2": lambda: zoo.card("model2").make(),
    "mlp": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(16, 300), nn.ReLU(), nn.Linear(300, 70), nn.Dropout(0.3),
        nn.LayerNorm(70), nn.Linear(70, 16),
    ),
    "images": lambda: nn.Sequential(
        nn.Conv2d(1, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(20, 16),
    ),
}  # fmt: skip
BATCH = 19


def trained(name: str, device: str, apart: bool) -> dict[str, Array]:
    """State after some steps, with every launch alone if ``apart``."""
    spec = StepSpec(NETS[name](), "cross_entropy", SGD(0.05, momentum=0.9))
    session = Session(spec, open_backend(device), seed=3)
    inputs = Inputs(TensorType((BATCH, 1, 4, 4)), TensorType((BATCH,), int32))
    executable = session.executable("train", inputs)
    rng = np.random.default_rng(5)
    for _ in range(4):
        x = rng.standard_normal(inputs.x.shape).astype(np.float32)
        y = rng.integers(0, 16, BATCH).astype(np.int32)
        if not apart:
            session.train(inputs, x, y, np.ones(BATCH, np.float32))
            continue
        for what, array in (("x", x), ("y", y), ("weight", np.ones(BATCH, np.float32))):
            executable.write(what, array)
        for position in range(len(executable.plan.steps)):
            executable.bound.run_step(position)
    assert not session.faults()
    return session.export() | {"gradient": executable.read("gradient.0")}


@pytest.mark.parametrize("name", NETS)
def test_bundles_compute_the_bits_of_their_launches(name: str, device: str) -> None:
    assert same(trained(name, device, apart=False), trained(name, device, apart=True))


def test_a_tiny_network_trains_in_one_launch() -> None:
    spec = StepSpec(zoo.card("model2").make(), "cross_entropy", SGD(0.05, momentum=0.9))
    session = Session(spec, open_backend("null"))
    inputs = Inputs(TensorType((32, 16)), TensorType((32,), int32))
    _, lowered = session.plan("train", inputs)
    assert len(stages(lowered)) == 1
    assert sum(len(low.rendered.launches) for low in lowered) > 10
