"""Resampling kernels against the op's own meaning."""

from __future__ import annotations

import pytest
from tests.kernels.harness import Machine, check_sample, halved, step_of

from pocketgrad.ir.core import Sample, TensorType
from pocketgrad.kernels.resize import ResizeKernel
from pocketgrad.ops.resize import Resize, Resize1d, Resize1dGrad

KERNEL = ResizeKernel()
MODES = [("nearest", False), ("linear", False), ("linear", True)]
# Axis, size after, input: longer than a vector behind the axis, and the axis last.
LARGER = (
    (1, 14, (3, 7, 35)),
    (2, 66, (2, 5, 33)),
    (0, 3, (8, 40)),
    (1, 64, (9, 1, 17)),
    (1, 1, (2, 9)),
)


def larger(mode: str, corners: bool) -> list[Sample]:
    found = []
    for axis, size, shape in LARGER:
        forward, x = Resize1d(axis, size, mode, corners), TensorType(shape)
        grad = Resize1dGrad(axis, shape[axis], mode, corners)
        found += [Sample(forward, (x,)), Sample(grad, forward.infer(x))]
    return found


@pytest.mark.parametrize("op", [Resize1d, Resize1dGrad], ids=lambda op: op.label())
def test_every_sample_agrees_with_the_reference(op: type[Resize], opencl: Machine):
    for sample in op.samples():
        check_sample(opencl, KERNEL, sample, terms=4)


@pytest.mark.parametrize(("mode", "corners"), MODES)
def test_larger_sizes_agree_in_several_configurations(mode: str, corners: bool, opencl: Machine):
    for sample in larger(mode, corners):
        check_sample(opencl, KERNEL, sample, terms=64, extra=2)


def test_half_is_storage_only(opencl: Machine):
    for sample in larger("linear", False):
        check_sample(opencl, KERNEL, halved(sample), terms=64)


def test_sizes_whose_positions_pass_an_int_are_refused():
    small, large = (TensorType((1, n, 1)) for n in (1000, 50000))
    assert KERNEL.matches(step_of(Sample(Resize1d(1, 30000, "linear", False), (small,))))
    assert not KERNEL.matches(step_of(Sample(Resize1d(1, 30000, "linear", False), (large,))))
