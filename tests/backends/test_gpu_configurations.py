"""The launches a GPU gets, on the CPU runtimes: many small items, work-groups, sums in parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.helpers.tolerance import assert_close

from pocketgrad import zoo
from pocketgrad.backends import open_backend
from pocketgrad.backends.api import Backend
from pocketgrad.base.dtypes import float32, int32, uint8
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.optim import SGD
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, StepSpec, Stored

BATCH = 32
INPUTS = Inputs(
    TensorType((BATCH, 1, 28, 28), uint8), TensorType((BATCH,), int32), Stored((72.0,), (90.0,))
)


def session(backend: Backend) -> Session:
    model = zoo.card("lenet5").build()
    return Session(StepSpec(model, "cross_entropy", SGD(0.05, momentum=0.9)), backend)


def test_a_step_configured_for_a_gpu_gives_the_reference_gradients(device: str) -> None:
    backend = open_backend(device)
    backend.info = replace(backend.info, kind="gpu", compute_units=132, vector_width=4)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, INPUTS.x.shape).astype(np.uint8)
    y = rng.integers(0, 10, BATCH).astype(np.int32)
    ours, reference = session(backend), session(open_backend("reference"))
    for each in (ours, reference):
        each.train(INPUTS, x, y, np.ones(BATCH, np.float32))
    expected = reference.gradients()
    for name, gradient in ours.gradients().items():
        assert_close(gradient, expected[name], float32, BATCH * 28 * 28, name)
