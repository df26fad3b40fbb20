"""Convolution of channels-last images against the ops' own meaning, over geometry and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.kernels.harness import Machine, check_step, drawn, halved, step_of
from tests.kernels.test_conv import LAYERS, terms, three
from tests.kernels.test_pool_last import lying

from pocketgrad.ir.core import Sample
from pocketgrad.kernels.conv_last import ConvLastKernel
from pocketgrad.ops.conv import Conv2d, Conv2dGradInput
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole

CONV = ConvLastKernel()


def two(*layer: Any) -> Iterator[Sample]:
    """The convolution and its gradient for the input."""
    return (s for s in three(*layer) if isinstance(s.op, Conv2d | Conv2dGradInput))


def last_step(sample: Sample, wider: int = 0, stored: bool = True) -> Step:
    """The sample's step with images channels-last, ``wider`` channels among others; weights as
    parameters are ``stored``, else row-major."""
    step = step_of(sample)
    x, w = step.reads
    weights = whole(w)
    if stored:
        k, c, _, s = w.shape
        weights = View(w, 0, w.shape, (1, k, s * c * k, c * k))
    writes = {v: lying(v, wider) for v in step.writes}
    return replace(step, reads={x: lying(x, wider), w: weights}, writes=writes)


def check(on: Machine, sample: Sample, step: Step, extra: int = 0) -> None:
    feeds = drawn(sample)
    check_step(on, CONV, step, feeds, sample.op.ref(*feeds), terms(sample), extra)


SAMPLES = [s for op in (Conv2d, Conv2dGradInput) for s in op.samples() if s.ins[0].size]


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "row-major"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s.op.label()}{s.ins}")
def test_every_sample_of_the_ops_agrees_with_its_meaning(
    opencl: Machine, sample: Sample, stored: bool
) -> None:
    check(opencl, sample, last_step(sample, stored=stored))


ONE = (0, 0, 0, 0)
SAME = (1, 1, 1, 1)
WIDER: dict[str, tuple[Any, ...]] = {
    "a vector of channels": ((2, 16, 6, 9), (16, 16, 3, 3), 1, SAME),
    "DenseNet's 12": ((1, 28, 8, 8), (12, 28, 3, 3), 1, SAME),
    "several vectors and an end": ((1, 20, 5, 14), (75, 20, 3, 3), 1, SAME),
    "one tap": ((3, 33, 5, 7), (48, 33, 1, 1)),
    "one tap with a stride": ((3, 17, 9, 8), (32, 17, 1, 1), 2),
    "a stride of two": ((2, 32, 9, 16), (33, 32, 3, 3), 2, SAME),
    "groups of channels": ((1, 48, 7, 8), (64, 12, 3, 3), 1, SAME, 1, 4),
    "planes of 2 by 2": ((9, 24, 2, 2), (40, 24, 3, 3), 1, SAME),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_few_channels_agree(opencl: Machine, name: str) -> None:
    for sample in two(*LAYERS[name]):
        check(opencl, sample, last_step(sample))


@pytest.mark.parametrize("name", WIDER)
def test_layers_agree_in_several_configurations(opencl: Machine, name: str) -> None:
    for sample in two(*WIDER[name]):
        check(opencl, sample, last_step(sample), extra=1)


@pytest.mark.parametrize("name", ["DenseNet's 12", "several vectors and an end", "one tap"])
def test_images_may_be_slices_of_a_join(opencl: Machine, name: str) -> None:
    for sample in two(*WIDER[name]):
        check(opencl, sample, last_step(sample, wider=5))


@pytest.mark.parametrize("name", ["DenseNet's 12", "one tap", "a stride of two"])
def test_half_precision_is_stored_and_floats_are_summed(opencl: Machine, name: str) -> None:
    for sample in two(*WIDER[name]):
        check(opencl, halved(sample), last_step(halved(sample), wider=3))


def test_few_channels_may_lie_row_major(opencl: Machine) -> None:
    sample, _ = two((2, 3, 11, 13), (20, 3, 3, 3), 2, SAME)
    step = last_step(sample)
    x, w = step.reads
    check(opencl, sample, replace(step, reads={x: whole(x), w: step.reads[w]}), extra=1)


def test_images_that_lie_otherwise_are_left_to_others() -> None:
    for sample in two((2, 16, 8, 8), (4, 16, 3, 3)):
        step = last_step(sample)
        (x, w), (y,) = step.reads, step.writes
        assert CONV.matches(step)
        assert not CONV.matches(replace(step, writes={y: whole(y)}))
        assert not CONV.matches(replace(step, reads={x: whole(x), w: step.reads[w]}))
