"""Kernels that read by index, and their gradients, against the ops' own meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.kernels.harness import (
    Machine,
    check_sample,
    check_step,
    compute,
    configurations,
    drawn,
    halved,
    step_of,
)

from pocketgrad.base.dtypes import DType, float16, float32, int32, int64, uint8
from pocketgrad.ir.core import Sample, TensorType
from pocketgrad.kernels.embed import (
    GatherGradKernel,
    GatherKernel,
    Indexed,
    TakeGradKernel,
    TakeKernel,
)
from pocketgrad.ops.embed import Gather, GatherGrad, Take, TakeGrad

FAMILIES: tuple[Indexed, ...] = (
    TakeKernel(),
    TakeGradKernel(),
    GatherKernel(),
    GatherGradKernel(),
)


def table(rows: int, columns: int, *index: int, dtype: DType = float32) -> tuple[Sample, Sample]:
    """Reading a table, and the gradient."""
    row, at = TensorType((rows, columns), dtype), TensorType(index, int64)
    read = TensorType((*index, columns), dtype)
    ints = (-2, rows + 2)
    return Sample(Take(), (row, at), ints=ints), Sample(TakeGrad(rows), (at, read), ints=ints)


def along(x: tuple[int, ...], axis: int, length: int) -> tuple[Sample, Sample]:
    """Reading along an axis, and the gradient."""
    at = TensorType((*x[:axis], length, *x[axis + 1 :]), int32)
    ints = (-2, x[axis] + 2)
    read = TensorType(at.shape)
    grad = GatherGrad(axis, x[axis])
    return (
        Sample(Gather(axis), (TensorType(x), at), ints=ints),
        Sample(grad, (at, read), ints=ints),
    )


LARGER: tuple[tuple[Sample, Sample], ...] = (
    table(300, 33, 70),
    table(13, 64, 3, 67),
    along((5, 37, 6), 1, 41),
    along((65, 10), 1, 1),
    along((70,), 0, 130),
)


def family_of(sample: Sample) -> Indexed:
    return next(f for f in FAMILIES if isinstance(sample.op, f.op))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_every_sample_agrees_with_the_reference(family: Indexed, opencl: Machine):
    for sample in family.op.samples():
        check_sample(opencl, family, sample, terms=9)


@pytest.mark.parametrize("pair", LARGER, ids=lambda p: f"{p[0].op}{p[0].ins[0]}")
def test_larger_tables_agree_in_several_configurations(
    pair: tuple[Sample, Sample], opencl: Machine
):
    for sample in pair:
        check_sample(opencl, family_of(sample), sample, terms=200, extra=3)


@pytest.mark.parametrize("dtype", [float16, int32, int64, uint8], ids=str)
def test_elements_of_every_type_are_read_bit_by_bit(dtype: DType, opencl: Machine):
    for columns in (1, 5, 40):
        read, _ = table(9, columns, 21, dtype=dtype)
        check_sample(opencl, TakeKernel(), read)


def test_a_gradient_in_half_is_summed_in_float(opencl: Machine):
    """Adding 1 to 2048 in half stays 2048."""
    for _, grad in (table(3, 17, 3000), along((3, 5), 0, 3000)):
        sample = halved(grad)
        index, ct = drawn(sample)
        feeds = [np.zeros_like(index), np.ones_like(ct)]
        expected = sample.op.ref(*feeds)
        assert expected[0].max() == 3000
        check_step(opencl, family_of(sample), step_of(sample), feeds, expected, extra=1)


def test_gradients_are_the_same_bits_every_time_and_in_every_configuration(opencl: Machine):
    for _, sample in (LARGER[0], LARGER[1], LARGER[2]):
        family, step, feeds = family_of(sample), step_of(sample), drawn(sample)
        found: list[Any] = []
        for config in configurations(family, step, opencl.info, 2):
            rendered = family.render(step, config, opencl.info)
            found += compute(opencl, step, rendered, feeds)
            found += compute(opencl, step, rendered, feeds)
        assert all(f.tobytes() == found[0].tobytes() for f in found)
