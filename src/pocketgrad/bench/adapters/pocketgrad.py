"""Our own training step, on one OpenCL device; the device is the variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import pocketgrad
from pocketgrad.base.dtypes import Array
from pocketgrad.bench.api import Variant
from pocketgrad.bench.prepare import model_of
from pocketgrad.bench.task import Task
from pocketgrad.engine.ceilings import measure
from pocketgrad.nn.optim import SGD
from pocketgrad.train.batches import inputs_of
from pocketgrad.train.device import open_place
from pocketgrad.train.preview import Expected, preview
from pocketgrad.train.session import Session
from pocketgrad.train.step import StepSpec

REQUIRES: tuple[str, ...] = ("pyopencl",)
VARIANTS: tuple[Variant, ...] = ()  # the devices of the machine


def version() -> str:
    """The version; drivers are opened with the model."""
    return pocketgrad.__version__


def open_session(task: Task, variant: Variant) -> OurSession:
    """The model on the device."""
    return OurSession(task, variant.name)


class OurSession:
    """A training session; batches lie on the device from the start, as the peers' do."""

    def __init__(self, task: Task, device: str) -> None:
        work = task.workload
        model = model_of(work.model, task.options)
        model.load_state_dict(task.weights)
        optimizer = SGD(work.lr, momentum=work.momentum)
        spec = StepSpec(model, "cross_entropy", optimizer, numerics=_numerics(work.numerics))
        self.place = open_place(device)
        self.session = Session(spec, self.place.backend, work.seed)
        batches: list[tuple[Array, Array]] = list(task.batches)
        self.inputs = inputs_of(*batches[0])
        xs, ys = (np.stack(arrays) for arrays in zip(*batches, strict=True))
        weight = np.ones((len(batches), work.batch), np.float32)
        self.data = self.session.upload(self.inputs, {"x": xs, "y": ys, "weight": weight})
        self.first = self.asked = 0  # the next batch, and how many from it on are to be done

    def reset(self) -> None:
        """All state as at the start; nothing is planned or built anew."""
        session = self.session
        for name, t in session.spec.state.items():
            if name not in session.spec.packings and name not in ("seed", "lr"):
                session.write_state(name, np.zeros(t.shape, t.dtype.numpy))
        session.reset_faults()
        session.load_model()
        self.first = self.asked = 0
        session.backend.finish()

    def step(self) -> None:
        """Asked for; batches that follow each other on the device are enqueued together."""
        self.asked += 1
        if self.first + self.asked == self.data.count:
            self._enqueue()

    def _enqueue(self) -> None:
        self.session.train_on(self.data, self.first, self.asked)
        self.first, self.asked = (self.first + self.asked) % self.data.count, 0

    def sync(self) -> float:
        """The queue is in order: when the loss has come, the update before it has ended."""
        if self.asked:
            self._enqueue()
        loss = self.session.loss()
        self.session.backend.finish()
        return loss

    def facts(self) -> Mapping[str, Any]:
        """From the plan, and what crossed between host and device."""
        summary = preview(self.session, Expected(self.inputs, "the workload"), "")
        return {
            "device": self.place.backend.info.name,
            "launches": summary.launch_count,
            "step_nbytes": summary.nbytes,
            "arena_nbytes": self.session.plan("train", self.inputs)[0].arena_nbytes,
            "device_nbytes": self.session.allocated_nbytes,
            "peak_by_kind": dict(summary.peak_by_kind),
        }

    def close(self) -> None:
        """The process ends with it."""
        self.session.backend.finish()


def _numerics(name: str) -> Any:  # a Literal; StepSpec refuses other names
    return name


def ceilings(variant: Variant) -> dict[str, float]:
    """What the device can do at best, in this process: GFLOPS and GB/s by name."""
    found, _ = measure(open_place(variant.name).backend)
    names = {"arithmetic": "fma_gflops", "memory": "copy_gb_per_s"}
    return {names[ceiling.name]: ceiling.per_s / 1e9 for ceiling in found}
