"""Winograd convolutions of channels-last images against the ops' own meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.helpers.tolerance import assert_winograd
from tests.kernels.harness import Machine, compute, drawn, halved, step_of
from tests.kernels.test_conv import three
from tests.kernels.test_pool_last import lying

from pocketgrad.base.errors import DeviceError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Sample, TensorType, Value
from pocketgrad.kernels import select
from pocketgrad.kernels.spec import Config, DeviceInfo, Kernel
from pocketgrad.kernels.winograd import WinogradForward, WinogradGradInput
from pocketgrad.kernels.winograd_grad import WinogradGradWeight
from pocketgrad.kernels.winograd_work import BY_CHANNELS, BY_TILES, STAGED
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.conv import Conv2d, Conv2dGradInput, Conv2dGradWeight, biased
from pocketgrad.ops.transcendental import relu
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, last, whole

FAMILIES: dict[type[Any], Kernel] = {
    Conv2d: WinogradForward(),
    Conv2dGradInput: WinogradGradInput(),
}
GRAD_WEIGHT = WinogradGradWeight()
OPS = pytest.mark.parametrize("op", FAMILIES, ids=lambda op: op.__name__)

CPU = DeviceInfo("a CPU", "someone", "cpu", 2, 4096, 1 << 18, 128, 1 << 30, 16)
GPU = DeviceInfo("a GPU", "someone", "gpu", 40, 256, 32768, 128, 1 << 30, 4)

# x, w, padding (top, left, bottom, right): ragged tiles and vectors, images smaller than a tile.
LAYERS: tuple[tuple[Any, ...], ...] = (
    ((2, 5, 9, 8), (7, 5, 3, 3), (1, 1, 1, 1)),
    ((1, 16, 4, 4), (16, 16, 3, 3), (1, 1, 1, 1)),
    ((3, 17, 3, 5), (33, 17, 3, 3), (0, 0, 0, 0)),
    ((2, 40, 2, 7), (20, 40, 3, 3), (2, 1, 0, 2)),
    ((5, 3, 1, 1), (12, 3, 3, 3), (1, 1, 1, 1)),
    ((1, 70, 15, 14), (2, 70, 3, 3), (2, 2, 2, 2)),
)
BASE = {"TILE": 4, "VW": 16, "NV": 1, "TR": 4, "BLK": 2, "CB": 16, "WGS": 1}
CONFIGS: tuple[Config, ...] = (
    {**BASE, "FORM": BY_TILES},
    {**BASE, "FORM": BY_CHANNELS, "NV": 2},
    {**BASE, "FORM": STAGED, "VW": 4, "WGS": 64},
    {**BASE, "FORM": BY_TILES, "TILE": 2, "NV": 2, "TR": 7, "BLK": 1},
    {**BASE, "FORM": BY_CHANNELS, "TILE": 2, "VW": 8},
    {**BASE, "FORM": STAGED, "TILE": 2, "VW": 1, "NV": 4, "TR": 1},
)


GRAD_BASE = {"TILE": 4, "VW": 16, "NV": 1, "TR": 8, "CB": 16, "GRP": 1, "WGS": 1}
GRAD_CONFIGS: tuple[Config, ...] = (
    GRAD_BASE,
    {**GRAD_BASE, "NV": 2, "GRP": 3},
    {**GRAD_BASE, "VW": 4, "TR": 4, "WGS": 64, "GRP": 2},
    {**GRAD_BASE, "TILE": 2, "NV": 2, "CB": 32},
)


def packed(value: Value) -> View:
    """Weights [K, C, R, S] in the order R S C K, as the flat parameters hold them."""
    k, c, _, s = value.shape
    return View(value, 0, value.shape, (1, k, s * c * k, c * k))


def last_step(sample: Sample, wider: int = 0) -> Step:
    """The sample's step, images channels-last with ``wider`` channels among others."""
    step = step_of(sample)
    image, weights = step.reads
    reads = {image: lying(image, wider), weights: packed(weights)}
    return replace(step, reads=reads, writes={v: lying(v, wider) for v in step.writes})


def samples(op: type[Any]) -> Iterator[Sample]:
    for x, w, padding in LAYERS:
        yield from (s for s in three(x, w, 1, padding) if type(s.op) is op)


def check(on: Machine, step: Step, sample: Sample, config: Config) -> None:
    kernel, feeds = FAMILIES[type(sample.op)], drawn(sample)
    assert kernel.matches(step)
    assert kernel.fits(step, config, on.info)
    rendered = kernel.render(step, config, on.info)
    (found,) = compute(on, step, rendered, feeds)
    (wanted,) = sample.op.ref(*feeds)
    assert_winograd(found, wanted, f"{sample.op} of {sample.ins} with {dict(config)}")


@OPS
@pytest.mark.parametrize("case", range(len(CONFIGS)))
def test_ragged_layers_agree_in_every_form(op: type[Any], case: int, opencl: Machine) -> None:
    for i, sample in enumerate(list(samples(op))[case % 2 :: 2]):
        check(opencl, last_step(sample, wider=5 * (i % 2)), sample, CONFIGS[case])


@OPS
def test_the_choices_for_a_cpu_and_for_a_gpu_are_right(op: type[Any], opencl: Machine) -> None:
    (sample,) = (s for s in three((2, 48, 15, 17), (40, 48, 3, 3), 1, (1,) * 4) if type(s.op) is op)
    for device in (CPU, GPU):
        on = replace(opencl, info=device)
        step = last_step(sample)
        check(on, step, sample, FAMILIES[op].defaults(step, device))


@OPS
def test_half_is_storage_only(op: type[Any], opencl: Machine) -> None:
    sample = halved(next(samples(op)))
    for config in CONFIGS[:3]:
        check(opencl, last_step(sample, 3), sample, config)


def grad_step(sample: Sample, wider: int = 0, weights: Callable[[Value], View] = packed) -> Step:
    """The step of a gradient for the weights, images channels-last."""
    step = step_of(sample)
    reads = {v: lying(v, wider) for v in step.reads}
    return replace(step, reads=reads, writes={v: weights(v) for v in step.writes})


def check_grad(on: Machine, sample: Sample, step: Step, config: Config) -> None:
    feeds = drawn(sample)
    assert GRAD_WEIGHT.matches(step)
    (found,) = compute(on, step, GRAD_WEIGHT.render(step, config, on.info), feeds)
    (wanted,) = sample.op.ref(*feeds)
    assert_winograd(found, wanted, f"{sample.op} of {sample.ins} with {dict(config)}")


GRADS = [
    s
    for x, w, padding in LAYERS
    for s in three((3, *x[1:]), w, 1, padding)
    if isinstance(s.op, Conv2dGradWeight)
]


@pytest.mark.parametrize("case", range(len(GRAD_CONFIGS)))
def test_gradients_for_weights_agree_in_several_configurations(case: int, opencl: Machine) -> None:
    for i, sample in enumerate(GRADS[case % 2 :: 2]):
        assert GRAD_WEIGHT.fits(grad_step(sample), GRAD_CONFIGS[case], opencl.info)
        check_grad(opencl, sample, grad_step(sample, 5 * (i % 2)), GRAD_CONFIGS[case])


def test_gradients_for_weights_that_lie_as_k_c_r_s(opencl: Machine) -> None:
    check_grad(opencl, GRADS[0], grad_step(GRADS[0], 0, whole), GRAD_BASE)


def test_the_choice_for_gradients_for_weights_is_right(opencl: Machine) -> None:
    *_, sample = three((2, 48, 15, 17), (40, 48, 3, 3), 1, (1, 1, 1, 1))
    for device in (CPU, GPU):
        on = replace(opencl, info=device)
        step = grad_step(sample)
        check_grad(on, sample, step, GRAD_WEIGHT.defaults(step, device))


def test_gradients_for_weights_are_the_same_every_time(opencl: Machine) -> None:
    """Sums in parts are added in a fixed order."""
    step, feeds = grad_step(GRADS[3]), drawn(GRADS[3])
    rendered = GRAD_WEIGHT.render(step, {**GRAD_BASE, "GRP": 3}, opencl.info)
    (first,) = compute(opencl, step, rendered, feeds)
    for _ in range(3):
        (again,) = compute(opencl, step, rendered, feeds)
        assert (again == first).all()


def test_many_images_come_in_groups_that_stay_in_the_last_cache() -> None:
    *_, sample = three((128, 64, 32, 32), (64, 64, 3, 3), 1, (1, 1, 1, 1))
    step = grad_step(sample)
    assert GRAD_WEIGHT.defaults(step, CPU)["GRP"] >= 8


def fused(shape: tuple[int, ...], k: int) -> tuple[Step, list[Value]]:
    """A convolution with bias, residual and activation, as the scheduler fuses it."""
    n, c, h, w = shape
    with Builder() as builder:
        x = builder.input(TensorType(shape), "x")
        weights = builder.input(TensorType((k, c, 3, 3)), "w")
        bias = builder.input(TensorType((k,)), "b")
        rest = builder.input(TensorType((n, k, h, w)), "rest")
        (y,) = builder.add(Conv2d((1, 1), (1, 1, 1, 1), (1, 1), 1), x, weights)
        out = relu(add(biased(y, bias), rest))
        graph = builder.graph([out])
    (shaped,) = (v for node in graph.nodes for v in node.outputs if v.shape == (k, 1, 1))
    reads = {x: last(x), weights: packed(weights), shaped: View(bias, 0, (k, 1, 1), (1, 0, 0))}
    nodes = tuple(node for node in graph.nodes if shaped not in node.outputs)
    return Step(nodes, {**reads, rest: last(rest, k)}, {out: last(out)}), [x, weights, bias, rest]


@pytest.mark.parametrize("k", [16, 21])
@pytest.mark.parametrize("case", range(4))
def test_what_follows_is_done_before_storing(k: int, case: int, opencl: Machine) -> None:
    step, inputs = fused((2, 6, 7, 9), k)
    kernel = FAMILIES[Conv2d]
    assert kernel.matches(step)
    rng = np.random.default_rng(0)
    x, w, b, rest = (rng.standard_normal(v.shape).astype(np.float32) for v in inputs)
    config = CONFIGS[case]
    feeds = [x, w, b.reshape(k, 1, 1), rest]
    (found,) = compute(opencl, step, kernel.render(step, config, opencl.info), feeds)
    (y,) = step.nodes[0].op.ref(x, w)
    wanted = np.maximum(y + b.reshape(k, 1, 1) + rest, 0)
    assert_winograd(found, wanted, f"a fused step with {dict(config)}")


def test_strict_numerics_and_small_work_are_left_to_others() -> None:
    for sample in three((4, 64, 28, 28), (64, 64, 3, 3), 1, (1, 1, 1, 1)):
        if type(sample.op) in FAMILIES:
            step = last_step(sample)
            assert _chosen(step, strict=True) not in {k.name for k in FAMILIES.values()}
            assert _chosen(step) == FAMILIES[type(sample.op)].name
        else:
            step = grad_step(sample)
            assert _chosen(step) == GRAD_WEIGHT.name
            assert _chosen(step, strict=True) != GRAD_WEIGHT.name
    for sample in three((1, 4, 5, 5), (4, 4, 3, 3), 1, (1, 1, 1, 1)):
        if type(sample.op) in FAMILIES:
            assert _chosen(last_step(sample)) not in {k.name for k in FAMILIES.values()}


def _chosen(step: Step, strict: bool = False) -> str:
    try:
        return select(step, CPU, strict=strict)[0].name
    except DeviceError:
        return ""


@pytest.mark.parametrize(
    ("x", "w", "stride", "dilation", "groups"),
    [
        ((1, 8, 9, 9), (8, 8, 3, 3), 2, 1, 1),
        ((1, 8, 9, 9), (8, 8, 3, 3), 1, 2, 1),
        ((1, 8, 9, 9), (8, 4, 3, 3), 1, 1, 2),
        ((1, 8, 9, 9), (8, 8, 1, 3), 1, 1, 1),
    ],
)
def test_other_convolutions_do_not_match(
    x: Any, w: Any, stride: int, dilation: int, groups: int
) -> None:
    for sample in three(x, w, stride, (1, 1, 1, 1), dilation, groups):
        if type(sample.op) in FAMILIES:
            assert not FAMILIES[type(sample.op)].matches(last_step(sample))


@OPS
def test_row_major_images_do_not_match(op: type[Any]) -> None:
    for sample in samples(op):
        if sample.ins[0].shape[2:] != (1, 1):
            step = last_step(sample)
            image = next(iter(step.reads))
            other = replace(step, reads={**step.reads, image: whole(image)})
            assert not FAMILIES[op].matches(other)
