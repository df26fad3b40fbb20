"""What a training step will cost, before any data is there: the plan of a batch as a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from pocketgrad.backends.api import Backend, Lowered, stages
from pocketgrad.base.dtypes import dtype_of, float32, int32, uint8
from pocketgrad.base.errors import DtypeError, SettingError, ShapeError
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.module import Module
from pocketgrad.plan.summary import PlanSummary, summarise
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, StepSpec, Stored, build_graph

IMAGE_SIZES = (28, 32, 64, 96, 128, 160, 192, 224, 227, 256, 299)
_STATE_KINDS = (
    ("parameters.", "parameters"),
    ("frozen", "parameters"),
    ("buffers.", "parameters"),
    ("accumulated.", "gradients"),
)


@dataclass(frozen=True)
class Expected:
    """The types a step is planned for, and how they are known."""

    inputs: Inputs
    source: str


def preview(session: Session, expected: Expected, title: str) -> PlanSummary:
    """The summary of the training step; with accumulation, of the one that updates."""
    accumulating = session.spec.accumulate > 1
    plan, lowered = session.plan("apply" if accumulating else "train", expected.inputs)
    summary = summarise(plan, _launches(session.backend, lowered), title, kind_of_buffer)
    if accumulating:  # both kinds of step share one arena, the larger counts
        other, _ = session.plan("accumulate", expected.inputs)
        summary.peak_by_kind["workspace"] += max(0, other.arena_nbytes - plan.arena_nbytes)
    return summary


def _launches(backend: Backend, lowered: Sequence[Lowered]) -> list[tuple[str, int, int]]:
    """The family of every step, the number of its first launch and how many it takes part in."""
    if backend.name == "reference":
        return [(low.kernel, i + 1, 1) for i, low in enumerate(lowered)]
    number = {
        place.stage: i + 1 for i, members in enumerate(stages(lowered)) for _, place in members
    }
    found, last = [], 1
    for low in lowered:
        mine = sorted({number[p.stage] for p in low.places if p.stage in number})
        last = mine[0] if mine else last
        found.append((low.kernel, last, len(mine)))
    return found


def kind_of_buffer(name: str) -> str:
    """What a buffer of a session is for, as one of summary.KINDS."""
    if name in ("x", "y", "weight"):
        return "input"
    return next((kind for start, kind in _STATE_KINDS if name.startswith(start)), "optimizer state")


def expect(spec: StepSpec, batch: int, sample: Any = None) -> Expected:
    """The types of a batch: from a data set, a batch (x, y), a shape, or guessed from the model."""
    if sample is None:
        return _guessed(spec, batch)
    if hasattr(sample, "sample_shape") and hasattr(sample, "y"):
        x = TensorType((batch, *sample.sample_shape), dtype_of(np.empty(0, sample.x.dtype)))
        y = TensorType((batch, *sample.y.shape[1:]), dtype_of(sample.y))
        inputs = Inputs(x, y, Stored.of(sample))
        return Expected(inputs, f"data set '{sample.name}'")
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], np.ndarray):
        x, y = (TensorType((batch, *a.shape[1:]), dtype_of(a)) for a in sample)
        return Expected(Inputs(x, y), "the batch given")
    if isinstance(sample, tuple) and all(isinstance(n, int) for n in sample):
        return Expected(with_target(spec, TensorType((batch, *sample))), "the shape given")
    raise SettingError(
        f"sample= takes a data set, a batch (x, y) of arrays, or the shape of one sample; "
        f"got {type(sample).__name__}"
    )


def _guessed(spec: StepSpec, batch: int) -> Expected:
    for shape in _candidates(spec.model):
        image = len(shape) == 3
        x = TensorType((batch, *shape), uint8 if image else float32)
        try:
            inputs = with_target(spec, x, std=(255.0,) if image else (1.0,))
        except ShapeError:
            continue
        shown = "×".join(map(str, shape))
        return Expected(inputs, f"guessed from the model: {x.dtype} {shown}; sample= says another")
    raise SettingError(
        "the shape of a sample cannot be guessed from this model; "
        "pass sample= a data set, a batch (x, y), or the shape of one sample"
    )


def _candidates(model: Module) -> Iterator[tuple[int, ...]]:
    """Shapes of a sample that the first layer with weights could take."""
    for part in model.modules():
        if channels := getattr(part, "in_channels", None):
            yield from ((channels, n, n) for n in IMAGE_SIZES)
            return
        if features := getattr(part, "in_features", None):
            for channels in (1, 3):  # a model that flattens images first
                if isqrt(features // channels) ** 2 * channels == features:
                    side = isqrt(features // channels)
                    yield (channels, side, side)
            yield (features,)
            return


def with_target(spec: StepSpec, x: TensorType, std: tuple[float, ...] = (1.0,)) -> Inputs:
    """The batch type with the target that the loss takes."""
    batch, stored = x.shape[0], Stored(std=std)
    unknown = Inputs(x, TensorType((batch,), int32), stored)
    prediction = build_graph(spec, unknown, "predict").outputs[0].type
    labels = TensorType((batch, *prediction.shape[2:]), int32)
    values = TensorType(prediction.shape, float32)
    options = (labels, values) if spec.loss == "cross_entropy" else (values, labels)
    problem: Exception | None = None
    for y in options:
        inputs = Inputs(x, y, stored)
        try:
            build_graph(spec, inputs, "evaluate")
        except (ShapeError, DtypeError) as error:
            problem = problem or error
            continue
        return inputs
    raise SettingError(
        f"which target the loss takes for a prediction {prediction} cannot be guessed "
        f"({problem}); pass sample=(x, y)"
    )
