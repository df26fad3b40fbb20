"""Pooling of channels-last images against the ops' own meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.kernels.harness import Machine, check_step, drawn, halved, step_of
from tests.kernels.test_pool import turned

from pocketgrad.ir.core import Op, Sample, TensorType, Value
from pocketgrad.kernels.pool_last import PoolLastForward, PoolLastGrad
from pocketgrad.kernels.spec import Kernel
from pocketgrad.ops.average import (
    AdaptiveAvgPool2d,
    AdaptiveAvgPool2dGrad,
    AvgPool2d,
    AvgPool2dGrad,
)
from pocketgrad.ops.pool import (
    AdaptiveMaxPool2d,
    AdaptiveMaxPool2dGrad,
    MaxPool2d,
    MaxPool2dGrad,
)
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, last

FORWARD, GRAD = PoolLastForward(), PoolLastGrad()
OPS = [(FORWARD, op) for op in FORWARD.ops] + [(GRAD, op) for op in GRAD.ops]
CASES = pytest.mark.parametrize(("kernel", "op"), OPS, ids=lambda x: getattr(x, "__name__", ""))

SQUARE = (0, 0, 0, 0), (1, 1), False
# Kernel, stride, padding, dilation, ceil mode, input: channels around vectors, as in networks.
LARGER: tuple[tuple[Any, ...], ...] = (
    ((2, 2), (2, 2), *SQUARE, (2, 6, 6, 8)),
    ((2, 2), (2, 2), *SQUARE, (1, 31, 5, 7)),
    ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False, (2, 64, 9, 10)),
    ((3, 3), (2, 2), (0, 0, 0, 0), (1, 1), True, (1, 33, 8, 8)),
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), False, (1, 17, 5, 4)),
    ((2, 3), (3, 1), (0, 2, 1, 1), (2, 2), False, (1, 16, 7, 6)),
    ((7, 5), (1, 1), *SQUARE, (3, 130, 7, 5)),
)
ADAPTIVE: tuple[tuple[Any, ...], ...] = (
    ((1, 1), (2, 40, 6, 3)),
    ((2, 3), (1, 12, 6, 6)),
    ((3, 4), (2, 19, 5, 7)),
    ((1, 1), (1, 2, 1, 1)),
)


def larger(op: Any) -> list[Sample]:
    """Samples of an op whose channels fill vectors."""
    if issubclass(op, MaxPool2d):
        return [Sample(op(*a), (TensorType(x),)) for *a, x in LARGER]
    if issubclass(op, AvgPool2d):
        return [Sample(op(*a, i % 2 > 0), (TensorType(x),)) for i, (*a, x) in enumerate(LARGER)]
    if issubclass(op, AdaptiveMaxPool2d | AdaptiveAvgPool2d):
        return [Sample(op(out), (TensorType(x),)) for out, x in ADAPTIVE]
    forward, most = {
        MaxPool2dGrad: (MaxPool2d, [k[0] * k[1] for k, *_ in LARGER]),
        AvgPool2dGrad: (AvgPool2d, [0] * len(LARGER)),
        AdaptiveMaxPool2dGrad: (AdaptiveMaxPool2d, [x[2] * x[3] for _, x in ADAPTIVE]),
        AdaptiveAvgPool2dGrad: (AdaptiveAvgPool2d, [0] * len(ADAPTIVE)),
    }[op]
    return [turned(op, s, n) for s, n in zip(larger(forward), most, strict=True)]


def last_step(sample: Sample, wider: int = 0, unread: tuple[int, ...] = ()) -> Step:
    """The sample's step with every image channels-last, ``wider`` channels among others."""
    step = step_of(sample, unread=unread)
    return replace(
        step,
        reads={v: lying(v, wider) for v in step.reads},
        writes={v: lying(v, wider) for v in step.writes},
    )


def lying(value: Value, wider: int) -> View:
    """Channels-last, from the second of ``wider`` more channels on."""
    if not wider:
        return last(value)
    n, c, h, w = value.shape
    base = Value(TensorType((n, h, w, c + wider), value.dtype), f"{value.name}.wide")
    return replace(last(value, c + wider), base=base, offset=1)


def check(on: Machine, kernel: Kernel, sample: Sample, wider: int = 0, extra: int = 0) -> None:
    feeds = drawn(sample)
    check_step(on, kernel, last_step(sample, wider), feeds, sample.op.ref(*feeds), extra=extra)


@CASES
def test_every_sample_agrees_with_the_reference(
    kernel: Kernel, op: type[Op], opencl: Machine
) -> None:
    samples = [s for s in op.samples() if s.ins[0].shape[1] > 1 and s.ins[0].size]
    assert samples
    for sample in samples:
        check(opencl, kernel, sample)


@CASES
@pytest.mark.parametrize("wider", [0, 5])
def test_vectors_of_channels_agree_in_several_configurations(
    kernel: Kernel, op: type[Op], wider: int, opencl: Machine
) -> None:
    for sample in larger(op):
        check(opencl, kernel, sample, wider, extra=0 if wider else 2)


@CASES
def test_half_is_storage_only(kernel: Kernel, op: type[Op], opencl: Machine) -> None:
    for sample in larger(op)[:3]:
        check(opencl, kernel, halved(sample), wider=3)


@pytest.mark.parametrize("unread", [0, 1], ids=["values", "index"])
def test_an_output_that_nobody_reads_is_not_stored(unread: int, opencl: Machine) -> None:
    sample = larger(MaxPool2d)[2]
    feeds = drawn(sample)
    step = last_step(sample, unread=(unread,))
    assert len(step.writes) == 1
    check_step(opencl, FORWARD, step, feeds, [sample.op.ref(*feeds)[1 - unread]], extra=1)


@pytest.mark.parametrize("case", [1, 2, 4])
def test_the_last_nan_wins_and_the_first_of_equals(case: int, opencl: Machine) -> None:
    sample = larger(MaxPool2d)[case]
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, sample.ins[0].shape).astype(np.float32)
    x[rng.uniform(size=x.shape) < 0.1] = np.nan
    x[rng.uniform(size=x.shape) < 0.4] = -np.inf
    check_step(opencl, FORWARD, last_step(sample), [x], sample.op.ref(x), extra=2)


def test_images_that_lie_otherwise_are_left_to_others() -> None:
    sample = larger(MaxPool2d)[0]
    step = last_step(sample)
    assert FORWARD.matches(step)
    assert not GRAD.matches(step)
    assert not FORWARD.matches(step_of(sample))
    assert not FORWARD.matches(replace(step, writes=step_of(sample).writes))
