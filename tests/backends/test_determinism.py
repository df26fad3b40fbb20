"""Training twice gives the same bits, in one process and in another, on every runtime."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.training import same

from pocketgrad import nn, zoo
from pocketgrad.backends import open_backend
from pocketgrad.base.dtypes import Array, int32, uint8
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.optim import SGD
from pocketgrad.ops.arithmetic import mul
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, StepSpec, Stored

STEPS = 20
BATCH = 17
ROOT = Path(__file__).resolve().parents[2]


def lenet() -> nn.Module:
    return zoo.card("lenet5").build()


def with_dropout() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 5, 3, stride=2), nn.BatchNorm2d(5), nn.ReLU(), nn.Dropout(0.3),
        nn.Flatten(), nn.Linear(845, 33), nn.Dropout(0.5), nn.Linear(33, 10),
    )  # fmt: skip


MODELS: dict[str, Callable[[], nn.Module]] = {"lenet5": lenet, "dropout": with_dropout}


def trained(name: str, device: str) -> dict[str, Array]:
    """All state and every loss after some steps on made-up images."""
    inputs = Inputs(
        TensorType((BATCH, 1, 28, 28), uint8), TensorType((BATCH,), int32), Stored((72.0,), (90.0,))
    )
    spec = StepSpec(MODELS[name](), "cross_entropy", SGD(0.05, momentum=0.9))
    session = Session(spec, open_backend(device), seed=3)
    rng = np.random.default_rng(5)
    losses = []
    for _ in range(STEPS):
        x = rng.integers(0, 256, inputs.x.shape).astype(np.uint8)
        y = rng.integers(0, 10, BATCH).astype(np.int32)
        session.train(inputs, x, y, np.ones(BATCH, np.float32))
        losses.append(session.loss())
    assert not session.faults()
    return session.export() | {"losses": np.array(losses)}


def digest(arrays: dict[str, Array]) -> str:
    """A short name of all bits."""
    parts = (name.encode() + arrays[name].tobytes() for name in sorted(arrays))
    return hashlib.sha256(b"".join(parts)).hexdigest()


@pytest.mark.parametrize("name", MODELS)
def test_training_twice_gives_the_same_bits(name: str, device: str) -> None:
    first = trained(name, device)
    assert len(set(first["losses"].tolist())) == STEPS
    assert same(first, trained(name, device))


def test_another_process_trains_to_the_same_bits(device: str) -> None:
    code = (
        "from tests.backends.test_determinism import digest, trained;"
        f"print(digest(trained('dropout', {device!r})))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert other.returncode == 0, other.stderr
    assert other.stdout.split() == [digest(trained("dropout", device))]


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_masks_are_the_references(p: float, device: str) -> None:
    shape = (7, 1, 3, 37)
    inputs = Inputs(TensorType(shape), TensorType((shape[0], 111)))
    masks = []
    for selector in (device, "reference"):
        model = nn.Sequential(nn.Flatten(), nn.Dropout(p), Kept(111))
        session = Session(StepSpec(model, "mse", SGD(0.0)), open_backend(selector), seed=11)
        seen = []
        for _ in range(3):
            ones = np.ones(shape, np.float32)
            zeros = np.zeros(inputs.y.shape, np.float32)
            session.train(inputs, ones, zeros, np.ones(shape[0], np.float32))
            seen.append(session.read_state("buffers.float32"))
        masks.append(np.stack(seen))
    ours, reference = masks
    assert np.array_equal(ours, reference)
    assert not np.array_equal(ours[0], ours[1])
    assert abs(np.mean(ours == 0) - p) < 0.05


class Kept(nn.Module):
    """Passes its input on, times a weight, and keeps the latest input in a buffer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_parameter("weight", nn.Parameter(np.ones(size, np.float32)))
        self.latest = nn.Buffer(np.zeros((7, size), np.float32))

    def forward(self, x: Value) -> Value:
        self.update_buffer("latest", x)
        return mul(x, self.weight)
