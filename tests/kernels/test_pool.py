"""Pooling kernels against the ops' own meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.kernels.harness import Machine, check_sample, check_step, drawn, halved, step_of

from pocketgrad.ir.core import Op, Sample, TensorType, Value
from pocketgrad.kernels.pool import PoolForward, PoolGrad
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
from pocketgrad.plan.views import View

FORWARD, GRAD = PoolForward(), PoolGrad()
OPS = [(FORWARD, op) for op in FORWARD.ops] + [(GRAD, op) for op in GRAD.ops]

SQUARE = (0, 0, 0, 0), (1, 1), False
# Kernel, stride, padding, dilation, ceil mode, input: rows of several vectors, with ragged ends.
LARGER: tuple[tuple[Any, ...], ...] = (
    ((2, 2), (2, 2), *SQUARE, (2, 3, 6, 66)),
    ((2, 2), (2, 2), *SQUARE, (1, 9, 4, 28)),
    ((2, 2), (2, 2), (0, 1, 0, 1), (1, 1), False, (1, 2, 5, 70)),
    ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), True, (1, 9, 9, 71)),
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), False, (1, 3, 7, 35)),
    ((1, 2), (3, 1), (0, 0, 0, 0), (1, 5), False, (1, 2, 7, 40)),
    ((1, 33), (1, 2), (0, 16, 0, 16), (1, 1), False, (1, 2, 2, 61)),
    ((9, 11), (9, 11), *SQUARE, (1, 10, 9, 11)),
)
ADAPTIVE: tuple[tuple[Any, ...], ...] = (
    ((1, 1), (2, 5, 13, 17)),
    ((3, 17), (1, 2, 6, 34)),
    ((1, 20), (1, 2, 5, 20)),
)


def larger(op: Any) -> list[Sample]:
    """Samples of an op at sizes that fill vectors."""
    found: list[Sample] = []
    if issubclass(op, AdaptiveMaxPool2d | AdaptiveAvgPool2d):
        found = [Sample(op(out), (TensorType(x),)) for out, x in ADAPTIVE]
    elif issubclass(op, MaxPool2d):
        found = [Sample(op(*attributes), (TensorType(x),)) for *attributes, x in LARGER]
    elif issubclass(op, AvgPool2d):
        found = [Sample(op(*a, i % 2 > 0), (TensorType(x),)) for i, (*a, x) in enumerate(LARGER)]
    elif issubclass(op, MaxPool2dGrad):
        taps = [kernel[0] * kernel[1] for kernel, *_ in LARGER]
        found = [turned(op, s, n) for s, n in zip(larger(MaxPool2d), taps, strict=True)]
    elif issubclass(op, AdaptiveMaxPool2dGrad):
        found = [turned(op, s, s.ins[0].size) for s in larger(AdaptiveMaxPool2d)]
    elif issubclass(op, AvgPool2dGrad):
        found = [turned(op, s) for s in larger(AvgPool2d)]
    elif issubclass(op, AdaptiveAvgPool2dGrad):
        found = [turned(op, s) for s in larger(AdaptiveAvgPool2d)]
    return found


def turned(grad: Callable[..., Op], forward: Sample, indices: int = 0) -> Sample:
    """The gradient's sample of a forward one."""
    x = forward.ins[0]
    y, *index = forward.op.infer(x)
    op = grad(**forward.op.attributes(), hw=x.shape[2:])
    return Sample(op, (*index, y), ints=(0, indices))


@pytest.mark.parametrize(("kernel", "op"), OPS, ids=lambda x: getattr(x, "__name__", ""))
def test_every_sample_agrees_with_the_reference(kernel: Kernel, op: type[Op], opencl: Machine):
    for sample in op.samples():
        check_sample(opencl, kernel, sample, extra=0)


@pytest.mark.parametrize(("kernel", "op"), OPS, ids=lambda x: getattr(x, "__name__", ""))
def test_rows_of_several_vectors_agree_in_several_configurations(
    kernel: Kernel, op: type[Op], opencl: Machine
):
    assert larger(op)
    for sample in larger(op):
        check_sample(opencl, kernel, sample, extra=2)


@pytest.mark.parametrize(("kernel", "op"), OPS, ids=lambda x: getattr(x, "__name__", ""))
def test_half_is_storage_only(kernel: Kernel, op: type[Op], opencl: Machine):
    for sample in larger(op)[:3]:
        check_sample(opencl, kernel, halved(sample))


@pytest.mark.parametrize("unread", [0, 1], ids=["values", "index"])
def test_an_output_that_nobody_reads_is_not_stored(unread: int, opencl: Machine):
    sample = larger(MaxPool2d)[0]
    feeds = drawn(sample)
    step = step_of(sample, unread=[unread])
    assert len(step.writes) == 1
    expected = [sample.op.ref(*feeds)[1 - unread]]
    check_step(opencl, FORWARD, step, feeds, expected, extra=1)


@pytest.mark.parametrize("case", [0, 3, 4])
def test_the_last_nan_wins_and_the_first_of_equals(case: int, opencl: Machine):
    sample = larger(MaxPool2d)[case]
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, sample.ins[0].shape).astype(np.float32)
    x[rng.uniform(size=x.shape) < 0.1] = np.nan
    x[rng.uniform(size=x.shape) < 0.4] = -np.inf
    check_step(opencl, FORWARD, step_of(sample), [x], sample.op.ref(x), extra=2)


def test_a_channel_slice_and_a_channels_last_input_are_read_in_place(opencl: Machine):
    sample = larger(AvgPool2d)[0]
    n, c, h, w = sample.ins[0].shape
    slice_of = Value(TensorType((n, c + 4, h, w)), "wide")
    in_slice = View(slice_of, 2 * h * w, (n, c, h, w), ((c + 4) * h * w, h * w, w, 1))
    last = View(Value(TensorType((n, h, w, c)), "last"), 0, (n, c, h, w), (h * w * c, 1, w * c, c))
    feeds = drawn(sample)
    for view in (in_slice, last):
        step = step_of(sample, x0=view)
        check_step(opencl, FORWARD, step, feeds, sample.op.ref(*feeds), extra=1)


def test_a_broadcast_cotangent_is_read_in_place(opencl: Machine):
    sample = larger(AvgPool2dGrad)[1]
    shape = sample.ins[0].shape
    one = View(Value(TensorType((1,)), "one"), 0, shape, (0, 0, 0, 0))
    feeds = [np.full(shape, 1.5, np.float32)]
    check_step(opencl, GRAD, step_of(sample, x0=one), feeds, sample.op.ref(*feeds), extra=2)
