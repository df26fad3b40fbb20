"""Gradients of convolutions for their weights, images channels-last, against the op's meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.kernels.harness import Machine, check_step, drawn, halved, step_of
from tests.kernels.test_conv import terms, three
from tests.kernels.test_pool_last import lying

from pocketgrad.ir.core import Sample, Value
from pocketgrad.kernels.conv_last_grad import ConvLastGradWeight
from pocketgrad.kernels.tiling import root
from pocketgrad.ops.conv import Conv2dGradWeight
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole

KERNEL = ConvLastGradWeight()

# x, w, then stride, padding, dilation, groups: channels around vectors, planes around chunks.
LAYERS: dict[str, tuple[Any, ...]] = {
    "one tap": ((3, 20, 7, 9), (32, 20, 1, 1)),
    "one tap, ragged": ((2, 13, 6, 5), (25, 13, 1, 1)),
    "same": ((2, 17, 9, 8), (48, 17, 3, 3), 1, (1, 1, 1, 1)),
    "ragged, fewer than a vector": ((2, 9, 7, 7), (12, 9, 3, 3), 1, (1, 1, 1, 1)),
    "a stride of two": ((2, 16, 9, 11), (24, 16, 3, 3), 2, (1, 1, 1, 1)),
    "a stride of two, one tap": ((2, 30, 8, 7), (33, 30, 1, 1), 2),
    "a stride and a dilation": ((1, 8, 19, 23), (10, 8, 3, 3), (2, 3), (2, 3, 1, 4), (2, 1)),
    "groups": ((2, 24, 5, 7), (60, 8, 3, 3), 1, (1, 1, 1, 1), 1, 3),
    "more padding than kernel": ((1, 9, 5, 8), (18, 9, 3, 3), 1, (4, 5, 3, 6)),
    "planes of one": ((20, 40, 1, 1), (70, 40, 1, 1)),
    "planes smaller than the kernel": ((9, 10, 2, 2), (16, 10, 3, 3), 1, (1, 1, 1, 1)),
    "many pixels": ((2, 8, 40, 40), (16, 8, 3, 3), 1, (1, 1, 1, 1)),
}
# First layers: few channels, which may lie either way.
FIRST: dict[str, tuple[Any, ...]] = {
    "grey": ((3, 1, 14, 15), (6, 1, 5, 5), 1, (2, 2, 2, 2)),
    "colours": ((2, 3, 17, 18), (64, 3, 3, 3), 2),
    "colours, a large kernel": ((1, 3, 20, 21), (20, 3, 7, 7), 2, (3, 3, 3, 3)),
}
ANY = {**LAYERS, **FIRST}


def grad(name: str) -> Sample:
    *_, sample = three(*ANY[name])
    return sample


def packed(value: Value) -> View:
    """Weights [K, C, R, S] as the flat parameters have them: R S C K."""
    k, c, _, s = value.shape
    return View(value, 0, value.shape, (1, k, s * c * k, c * k))


def last_step(sample: Sample, wider: int = 0) -> Step:
    """The sample's step on channels-last images, ``wider`` channels among others."""
    step = step_of(sample)
    reads = {v: lying(v, wider) for v in step.reads}
    return replace(step, reads=reads, writes={v: packed(v) for v in step.writes})


def check(on: Machine, sample: Sample, step: Step, extra: int = 0) -> None:
    feeds = drawn(sample)
    check_step(on, KERNEL, step, feeds, sample.op.ref(*feeds), terms(sample), extra)


@pytest.mark.parametrize(
    "sample",
    [s for s in Conv2dGradWeight.samples() if s.ins[0].size and s.ins[1].shape[1] > 1],
    ids=lambda s: str(s.ins),
)
def test_every_sample_agrees_with_its_meaning(opencl: Machine, sample: Sample) -> None:
    check(opencl, sample, last_step(sample))


@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_in_several_configurations(opencl: Machine, name: str) -> None:
    check(opencl, grad(name), last_step(grad(name)), extra=2)


@pytest.mark.parametrize("name", ["one tap, ragged", "same", "groups", "a stride of two"])
def test_images_may_be_channels_among_others(opencl: Machine, name: str) -> None:
    check(opencl, grad(name), last_step(grad(name), wider=5))


@pytest.mark.parametrize("name", FIRST)
def test_few_channels_may_lie_either_way(opencl: Machine, name: str) -> None:
    sample = grad(name)
    step = last_step(sample)
    check(opencl, sample, step, extra=1)
    image, _ = root(step).inputs
    check(opencl, sample, replace(step, reads={**step.reads, image: whole(image)}))


@pytest.mark.parametrize("name", ["one tap, ragged", "same", "grey", "many pixels"])
def test_half_is_storage_only(opencl: Machine, name: str) -> None:
    sample = halved(grad(name))
    check(opencl, sample, last_step(sample, wider=3), extra=1)


@pytest.mark.parametrize("name", ["one tap, ragged", "same", "groups", "grey"])
def test_weights_may_lie_in_any_order(opencl: Machine, name: str) -> None:
    sample = grad(name)
    step = last_step(sample)
    check(opencl, sample, replace(step, writes={v: whole(v) for v in step.writes}))


def test_images_that_lie_otherwise_are_left_to_others() -> None:
    sample = grad("same")
    step, row_major = last_step(sample), step_of(sample)
    assert KERNEL.matches(step)
    for value, view in zip(step.reads, row_major.reads.values(), strict=True):
        assert not KERNEL.matches(replace(step, reads={**step.reads, value: view}))
