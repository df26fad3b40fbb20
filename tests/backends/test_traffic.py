"""A step allocates nothing, uploads only the batch, downloads only the loss and only when asked.

Counted twice: by the engine, and by watching every way into OpenCL that moves or makes memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.conftest import RUNTIMES, require_runtime
from tests.helpers.steps import batches, inputs_for, model_named, session_of

from pocketgrad.backends import open_backend
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs

BATCH = 32
STEPS = 5
FORBIDDEN = (
    "Buffer", "Image", "Pipe", "Program", "Kernel", "SVM", "CommandQueue", "Context", "UserEvent",
    "enqueue_map_buffer", "enqueue_fill_buffer", "enqueue_migrate_mem_objects", "svm_empty",
)  # fmt: skip
PARAMS = [
    pytest.param(name, marks=[pytest.mark.device, getattr(pytest.mark, name)]) for name in RUNTIMES
]


class Watch:
    """Calls of pyopencl while it is on: copies with their bytes, and whatever makes an object."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        import pyopencl as cl

        self.copies: list[tuple[str, int]] = []
        self.made: list[str] = []
        copy = cl.enqueue_copy

        def counted(queue: Any, dest: Any, src: Any, **options: Any) -> Any:
            up = isinstance(src, np.ndarray)
            self.copies.append(("up", src.nbytes) if up else ("down", dest.nbytes))
            return copy(queue, dest, src, **options)

        patch.setattr(cl, "enqueue_copy", counted)
        for name in FORBIDDEN:
            if hasattr(cl, name):
                patch.setattr(cl, name, self._recording(name, getattr(cl, name)))

    def _recording(self, name: str, inner: Any) -> Any:
        def recorded(*args: Any, **options: Any) -> Any:
            self.made.append(name)
            return inner(*args, **options)

        return recorded

    def nbytes(self, direction: str) -> int:
        """Bytes that went up or down."""
        return sum(n for where, n in self.copies if where == direction)


@pytest.fixture(params=PARAMS)
def session(request: pytest.FixtureRequest) -> Session:
    """LeNet-5 after its first step, so that everything is planned and built."""
    require_runtime(request.param)
    model, _, _ = model_named("lenet5")
    made = session_of(model, open_backend(request.param))
    made.train(inputs_for((1, 28, 28), BATCH), *next(source()))
    made.loss()
    return made


def source() -> Iterator[Any]:
    return batches((1, 28, 28), 10, BATCH)


@pytest.fixture
def inputs() -> Inputs:
    return inputs_for((1, 28, 28), BATCH)


def test_steps_move_the_batch_up_and_the_loss_down(
    session: Session, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    before = dict(session.traffic)
    allocated = session.allocated_nbytes
    feed = source()
    for _ in range(STEPS):
        session.train(inputs, *next(feed))
    session.backend.finish()
    batch_nbytes = inputs.x.nbytes + inputs.y.nbytes
    assert watch.made == []
    assert watch.nbytes("up") == STEPS * batch_nbytes
    assert watch.nbytes("down") == 0
    session.loss()
    assert watch.nbytes("down") == 4
    assert watch.made == []
    assert session.traffic["uploaded"] - before["uploaded"] == STEPS * batch_nbytes
    assert session.traffic["downloaded"] - before["downloaded"] == 4
    assert session.allocated_nbytes == allocated


def test_an_epoch_of_evaluation_downloads_three_numbers(
    session: Session, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = source()
    session.evaluate(inputs, *next(feed))
    watch = Watch(monkeypatch)
    for _ in range(STEPS):
        session.evaluate(inputs, *next(feed))
    session.totals()
    assert watch.made == []
    assert watch.nbytes("down") == 12
    assert watch.nbytes("up") == STEPS * (inputs.x.nbytes + inputs.y.nbytes) + 12


@pytest.mark.parametrize("name", PARAMS)
def test_the_stated_peak_is_what_the_device_gave(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_runtime(name)
    backend = open_backend(name)
    import pyopencl as cl

    sizes: list[int] = []
    make = cl.Buffer

    def measured(*args: Any, **options: Any) -> Any:
        buffer = make(*args, **options)
        sizes.append(buffer.size)
        return buffer

    monkeypatch.setattr(cl, "Buffer", measured)
    model, shape, classes = model_named("lenet5")
    session = session_of(model, backend)
    inputs = inputs_for(shape, BATCH)
    session.train(inputs, *next(batches(shape, classes, BATCH)))
    plan, _ = session.plan("train", inputs)
    assert plan.peak_nbytes == session.allocated_nbytes == sum(sizes)
