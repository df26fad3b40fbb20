"""Depthwise convolutions of channels-last images, and their gradients, against the ops' meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.kernels.harness import Machine, check_step, drawn, halved, step_of
from tests.kernels.test_conv import terms, three
from tests.kernels.test_conv_last_grad import packed
from tests.kernels.test_pool_last import lying

from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Node, Sample, TensorType
from pocketgrad.kernels.depthwise import Depthwise, DepthwiseGradWeight
from pocketgrad.kernels.spec import Kernel
from pocketgrad.kernels.tiling import root
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.conv import Conv2dGradWeight
from pocketgrad.ops.move import reshape
from pocketgrad.ops.transcendental import relu
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import last, whole

BOTH, GRAD_WEIGHT = Depthwise(), DepthwiseGradWeight()

# x, w, then stride, padding, dilation, groups.
LAYERS: dict[str, tuple[Any, ...]] = {
    "same": ((2, 32, 9, 10), (32, 1, 3, 3), 1, (1, 1, 1, 1), 1, 32),
    "ragged": ((2, 25, 7, 7), (25, 1, 3, 3), 1, (1, 1, 1, 1), 1, 25),
    "a stride of two": ((2, 24, 12, 13), (24, 1, 3, 3), 2, (1, 1, 1, 1), 1, 24),
    "five by five": ((1, 18, 8, 14), (18, 1, 5, 5), 1, (2, 2, 2, 2), 1, 18),
    "seven by seven": ((1, 8, 12, 16), (8, 1, 7, 7), 1, (3, 3, 3, 3), 1, 8),
    "a stride and a dilation": ((1, 9, 19, 23), (9, 1, 3, 3), (2, 3), (2, 3, 1, 4), (2, 1), 9),
    "a stride larger than the kernel": ((1, 16, 13, 14), (16, 1, 2, 2), (1, 3), (0,) * 4, 1, 16),
    "a multiplier": ((2, 10, 6, 7), (30, 1, 3, 3), 1, (1, 1, 1, 1), 1, 10),
    "a multiplier and a stride": ((1, 8, 9, 9), (16, 1, 3, 3), 2, (1, 1, 1, 1), 1, 8),
    "planes smaller than the kernel": ((3, 16, 2, 2), (16, 1, 3, 3), 1, (1, 1, 1, 1), 1, 16),
    "more padding than kernel": ((1, 12, 5, 8), (12, 1, 3, 3), 1, (4, 5, 3, 6), 1, 12),
}


def family(sample: Sample) -> Kernel:
    return GRAD_WEIGHT if isinstance(sample.op, Conv2dGradWeight) else BOTH


def last_step(sample: Sample, wider: int = 0) -> Step:
    """The sample's step: images channels-last, ``wider`` channels among others, weights R S C K."""
    step = step_of(sample)
    first, second = root(step).inputs
    (out,) = root(step).outputs
    if isinstance(sample.op, Conv2dGradWeight):
        reads = {first: lying(first, wider), second: lying(second, wider)}
        return replace(step, reads=reads, writes={out: packed(out)})
    reads = {first: lying(first, wider), second: packed(second)}
    return replace(step, reads=reads, writes={out: lying(out, wider)})


def check(on: Machine, sample: Sample, step: Step, extra: int = 0) -> None:
    feeds = drawn(sample)
    expected = sample.op.ref(*feeds)
    check_step(on, family(sample), step, feeds, expected, terms(sample), extra)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_in_several_configurations(opencl: Machine, name: str) -> None:
    for sample in three(*LAYERS[name]):
        check(opencl, sample, last_step(sample), extra=2)


@pytest.mark.parametrize("name", ["ragged", "a stride of two", "a multiplier"])
def test_images_may_be_channels_among_others(opencl: Machine, name: str) -> None:
    for sample in three(*LAYERS[name]):
        check(opencl, sample, last_step(sample, wider=5))


@pytest.mark.parametrize("name", ["ragged", "a multiplier and a stride"])
def test_half_is_storage_only(opencl: Machine, name: str) -> None:
    for sample in three(*LAYERS[name]):
        check(opencl, halved(sample), last_step(halved(sample), wider=3))


@pytest.mark.parametrize("name", ["ragged", "a multiplier"])
def test_weights_may_lie_in_any_order(opencl: Machine, name: str) -> None:
    for sample in three(*LAYERS[name]):
        step = last_step(sample)
        if isinstance(sample.op, Conv2dGradWeight):
            step = replace(step, writes={v: whole(v) for v in step.writes})
        else:
            weights = root(step).inputs[1]
            step = replace(step, reads={**step.reads, weights: whole(weights)})
        check(opencl, sample, step)


@pytest.mark.parametrize("name", ["ragged", "a stride of two"])
def test_bias_and_activation_follow_in_registers(opencl: Machine, name: str) -> None:
    forward, backward, _ = three(*LAYERS[name])
    for sample in (forward, backward):
        step = followed(sample)
        *_, column = step.reads
        feeds = drawn(replace(sample, ins=(*sample.ins, column.type)))
        (y,) = sample.op.ref(*feeds[:2])
        expected = (y + feeds[2]).clip(0)
        check_step(opencl, BOTH, step, feeds, [expected], terms(sample), extra=1)


def followed(sample: Sample) -> Step:
    """The sample, a bias and a rectifier."""
    with Builder() as builder:
        x, w = (builder.input(t, f"x{i}") for i, t in enumerate(sample.ins))
        (y,) = builder.add(sample.op, x, w)
        bias = builder.input(TensorType((y.shape[1],)), "bias")
        z = relu(add(y, reshape(bias, (y.shape[1], 1, 1))))
        graph = builder.graph([z])
    nodes = tuple(n for n in graph.nodes if not _views(n))
    (column,) = (n.outputs[0] for n in graph.nodes if _views(n) and n.inputs[0] is bias)
    reads = {x: last(x), w: packed(w), column: whole(column)}
    return Step(nodes, reads, {z: last(z)})


def _views(node: Node) -> bool:
    return node.op.label() == "reshape"


def test_only_channels_last_images_of_groups_of_one_match() -> None:
    for sample in three(*LAYERS["same"]):
        step = last_step(sample)
        assert family(sample).matches(step)
        assert not family(sample).matches(step_of(sample))
    for sample in three((2, 8, 6, 6), (8, 2, 3, 3), 1, (1, 1, 1, 1), 1, 4):
        assert not family(sample).matches(last_step(sample))
