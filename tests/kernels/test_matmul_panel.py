"""Products in panels against the op's own meaning: ragged tiles, operands and results anywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.kernels.harness import Machine, check_step, drawn, step_of
from tests.kernels.test_matmul import matrices

from pocketgrad.base.dtypes import float16
from pocketgrad.ir.core import Sample, TensorType, Value
from pocketgrad.kernels import select
from pocketgrad.kernels.matmul import product_of
from pocketgrad.kernels.matmul_panel import MatMulPanelKernel
from pocketgrad.kernels.spec import DeviceInfo
from pocketgrad.ops.linalg import MatMul
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

KERNEL = MatMulPanelKernel()
SIDES = [MatMul(a, b) for a in (False, True) for b in (False, True)]
WIDE = DeviceInfo("", "", "cpu", 2, 4096, 2**18, 128, 2**30, 16)


def check(on: Machine, sample: Sample, step: Step, extra: int = 0) -> None:
    feeds = drawn(sample)
    terms = max(1, product_of(step).k.size)
    check_step(on, KERNEL, step, feeds, sample.op.ref(*feeds), terms, extra)


@pytest.mark.parametrize("op", SIDES, ids=str)
def test_legal_configurations_agree(opencl: Machine, op: MatMul) -> None:
    sample = matrices(op, 45, 37, 67)
    check(opencl, sample, step_of(sample), extra=6)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (14, 5, 32), (15, 64, 33), (29, 65, 31), (3, 200, 1)])
def test_tiles_may_be_ragged_or_larger_than_the_matrix(
    opencl: Machine, sizes: tuple[int, int, int]
) -> None:
    for op in SIDES:
        sample = matrices(op, *sizes)
        check(opencl, sample, step_of(sample), extra=1)


def test_products_of_a_batch_have_panels_of_their_own(opencl: Machine) -> None:
    for op in SIDES:
        sample = matrices(op, 17, 20, 35, 2, 3)
        check(opencl, sample, step_of(sample), extra=1)


def test_the_result_may_have_rows_apart_or_lie_transposed(opencl: Machine) -> None:
    sample = matrices(MatMul(), 30, 33, 41)
    step = step_of(sample)
    (out,) = step.writes
    for strides in ((60, 1), (1, 30), (85, 2)):
        base = Value(TensorType((2600,)), "base")
        apart = replace(step, writes={out: View(base, 4, out.shape, strides)})
        check(opencl, sample, apart, extra=1)


def test_half_precision_is_stored_and_floats_are_summed(opencl: Machine) -> None:
    sample = matrices(MatMul(transpose_b=True), 18, 50, 36, dtype=float16)
    check(opencl, sample, step_of(sample), extra=1)


def test_large_products_of_cpus_go_to_panels_and_small_ones_do_not() -> None:
    large, small = step_of(matrices(MatMul(), 256, 256, 256)), step_of(matrices(MatMul(), 8, 8, 8))
    assert select(large, WIDE)[0].name == KERNEL.name
    assert select(small, WIDE)[0].name == "matmul"
    assert select(large, replace(WIDE, kind="gpu"))[0].name == "matmul"


@pytest.mark.parametrize("op", SIDES, ids=str)
def test_only_operands_that_several_tiles_read_are_copied(op: MatMul) -> None:
    step = step_of(matrices(op, 512, 512, 512))
    config = KERNEL.defaults(step, WIDE)
    assert (config["TM"], config["TN"]) == (14, 2)
    launches = KERNEL.render(step, config, WIDE).launches
    assert len(launches) == 1 + config["PA"] + config["PB"]
    assert launches[-1].global_size[0] >= 16
