"""Convolution kernels against the ops' own meaning, over geometry and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import pytest
from tests.kernels.harness import Machine, check_step, drawn, step_of

from pocketgrad.base.dtypes import float16, float64
from pocketgrad.ir.core import Sample, TensorType, Value
from pocketgrad.kernels.conv import ConvKernel
from pocketgrad.kernels.conv_grad import ConvGradWeightKernel
from pocketgrad.kernels.spec import DeviceInfo, Kernel
from pocketgrad.ops.conv import Conv2d, Conv2dGradInput, Conv2dGradWeight, pair_of
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

CONV, GRAD_WEIGHT = ConvKernel(), ConvGradWeightKernel()
OPS = (Conv2d, Conv2dGradInput, Conv2dGradWeight)


def family(op: object) -> Kernel:
    return GRAD_WEIGHT if isinstance(op, Conv2dGradWeight) else CONV


def three(
    x: tuple[int, ...],
    w: tuple[int, ...],
    stride: int | tuple[int, int] = 1,
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Iterator[Sample]:
    """The convolution and its two gradients."""
    op = Conv2d(pair_of(stride), padding, pair_of(dilation), groups)
    xt, wt = TensorType(x), TensorType(w)
    (yt,) = op.infer(xt, wt)
    yield Sample(op, (xt, wt))
    yield Sample(Conv2dGradInput(**op.attributes(), hw=(x[2], x[3])), (yt, wt))
    yield Sample(Conv2dGradWeight(**op.attributes(), rs=(w[2], w[3])), (xt, yt))


def terms(sample: Sample) -> int:
    """Products in a result."""
    (out,) = sample.op.infer(*sample.ins)
    return max(1, sample.op.cost(sample.ins, (out,)).flops // 2 // max(1, out.size))


def check(on: Machine, sample: Sample, step: Step, extra: int = 0) -> None:
    feeds = drawn(sample)
    kernel = family(sample.op)
    check_step(on, kernel, step, feeds, sample.op.ref(*feeds), terms(sample), extra)


@pytest.mark.parametrize(
    "sample", [s for op in OPS for s in op.samples()], ids=lambda s: f"{s.op.label()}{s.ins}"
)
def test_every_sample_of_the_ops_agrees_with_its_meaning(opencl: Machine, sample: Sample) -> None:
    check(opencl, sample, step_of(sample))


LAYERS: dict[str, tuple[Any, ...]] = {
    "same, rows of 7": ((3, 5, 7, 7), (9, 5, 3, 3), 1, (1, 1, 1, 1)),
    "same, rows of 20": ((2, 4, 6, 20), (5, 4, 3, 3), 1, (1, 1, 1, 1)),
    "LeNet's second": ((2, 6, 14, 14), (16, 6, 5, 5)),
    "a stride of two": ((2, 3, 17, 35), (10, 3, 3, 3), 2, (1, 1, 1, 1)),
    "a stride of two, one tap": ((2, 5, 8, 34), (6, 5, 1, 1), 2),
    "a stride larger than the kernel": ((1, 3, 13, 40), (5, 3, 2, 2), (1, 3)),
    "a stride and a dilation": ((1, 2, 19, 41), (3, 2, 3, 3), 2, (2, 3, 1, 4), 2),
    "a stride and a dilation with a divisor": (
        (1, 2, 10, 41),
        (3, 2, 3, 3),
        (1, 4),
        (2, 3, 1, 4),
        (1, 6),
    ),
    "depthwise": ((2, 5, 9, 18), (5, 1, 3, 3), 1, (1, 1, 1, 1), 1, 5),
    "depthwise with a stride": ((2, 5, 9, 37), (5, 1, 3, 3), 2, (1, 1, 1, 1), 1, 5),
    "one long row": ((2, 3, 1, 50), (4, 3, 1, 5), 1, (0, 2, 0, 2)),
    "more padding than kernel": ((1, 2, 5, 18), (3, 2, 3, 3), 1, (4, 5, 3, 6)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_in_several_configurations(opencl: Machine, name: str) -> None:
    for sample in three(*LAYERS[name]):
        check(opencl, sample, step_of(sample), extra=1)


def test_half_precision_is_stored_and_floats_are_summed(opencl: Machine) -> None:
    for sample in three((2, 3, 9, 19), (5, 3, 3, 3), 1, (1, 1, 1, 1)):
        halves = tuple(replace(t, dtype=float16) for t in sample.ins)
        check(opencl, replace(sample, ins=halves), step_of(replace(sample, ins=halves)))


def test_operands_may_begin_anywhere_in_their_buffer(opencl: Machine) -> None:
    for sample in three((2, 3, 9, 19), (5, 3, 3, 3), 1, (1, 1, 1, 1)):
        step = step_of(sample)
        moved = {v: inside(view, 7 * i + 3) for i, (v, view) in enumerate(step.reads.items())}
        out = {v: inside(view, 5) for v, view in step.writes.items()}
        check(opencl, sample, Step(step.nodes, moved, out))


def inside(view: View, offset: int) -> View:
    """The same view in a larger value."""
    return replace(view, base=Value(TensorType((prod(view.shape) + 40,)), "base"), offset=offset)


def test_many_images_and_few_weights_share_the_positions(opencl: Machine) -> None:
    *_, sample = three((40, 1, 28, 28), (6, 1, 5, 5))
    wide = replace(opencl.info, compute_units=16)
    step = step_of(sample)
    assert GRAD_WEIGHT.defaults(step, wide)["PARTS"] > 1
    on = replace(opencl, info=wide)
    check(on, sample, step)


def test_scattered_operands_are_left_to_a_copy() -> None:
    for sample in three((2, 3, 8, 8), (4, 3, 3, 3)):
        step = step_of(sample)
        first = next(iter(step.reads))
        strides = step.reads[first].strides
        scattered = replace(step.reads[first], strides=(*strides[:2], strides[3], strides[2] + 1))
        other = Step(step.nodes, {**step.reads, first: scattered}, step.writes)
        assert family(sample.op).matches(step)
        assert not family(sample.op).matches(other)


GPU = DeviceInfo("a GPU", "someone", "gpu", 40, 256, 32768, 128, 1 << 30, 4)


@pytest.mark.parametrize("name", ["same, rows of 7", "a stride of two", "depthwise"])
def test_what_suits_a_gpu_is_right_on_a_cpu_too(opencl: Machine, name: str) -> None:
    on = replace(opencl, info=GPU)
    for sample in three(*LAYERS[name]):
        step = step_of(sample)
        assert family(sample.op).defaults(step, GPU)["WGS"] == 64
        check(on, sample, step)


def test_small_images_fill_long_vectors() -> None:
    for sample in three((16, 64, 14, 14), (64, 64, 3, 3), 1, (1, 1, 1, 1)):
        step = step_of(sample)
        cpu = replace(GPU, kind="cpu", vector_width=16)
        config = family(sample.op).defaults(step, cpu)
        assert (config["VW"], config["FLAT"]) == (16, 1)


def test_ops_of_a_type_that_no_device_computes_are_refused() -> None:
    for sample in three((1, 1, 4, 4), (1, 1, 3, 3)):
        wide = replace(sample, ins=tuple(replace(t, dtype=float64) for t in sample.ins))
        assert not family(sample.op).matches(step_of(wide))
