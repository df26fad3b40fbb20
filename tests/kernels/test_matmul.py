"""The matrix product's kernels against the op's own meaning, over sizes, strides and settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.kernels.harness import Machine, check_step, drawn, step_of

from pocketgrad.base.dtypes import float16, float32
from pocketgrad.ir.core import Sample, TensorType, Value
from pocketgrad.kernels.matmul import MatMulKernel, product_of, scheme_of
from pocketgrad.ops.linalg import MatMul
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

KERNEL = MatMulKernel()


def matrices(op: MatMul, m: int, k: int, n: int, *batch: int, dtype: Any = float32) -> Sample:
    a = (*batch, k, m) if op.transpose_a else (*batch, m, k)
    b = (*batch, n, k) if op.transpose_b else (*batch, k, n)
    return Sample(op, (TensorType(a, dtype), TensorType(b, dtype)))


def check(on: Machine, sample: Sample, step: Step, extra: int = 0) -> None:
    feeds = drawn(sample)
    terms = max(1, product_of(step).k.size)
    check_step(on, KERNEL, step, feeds, sample.op.ref(*feeds), terms, extra)


@pytest.mark.parametrize("sample", list(MatMul.samples()), ids=str)
def test_every_sample_of_the_op_agrees_with_its_meaning(opencl: Machine, sample: Sample) -> None:
    check(opencl, sample, step_of(sample))


@pytest.mark.parametrize(
    "op", [MatMul(a, b) for a in (False, True) for b in (False, True)], ids=str
)
def test_legal_configurations_agree(opencl: Machine, op: MatMul) -> None:
    sample = matrices(op, 19, 37, 43)
    check(opencl, sample, step_of(sample), extra=6)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_empty_axes_give_zeros_or_nothing(opencl: Machine, sizes: tuple[int, int, int]) -> None:
    for op in (MatMul(), MatMul(transpose_b=True), MatMul(transpose_a=True, transpose_b=True)):
        sample = matrices(op, *sizes)
        check(opencl, sample, step_of(sample))


def test_half_precision_is_stored_and_floats_are_summed(opencl: Machine) -> None:
    for op in (MatMul(), MatMul(transpose_b=True), MatMul(transpose_a=True)):
        sample = matrices(op, 13, 50, 21, dtype=float16)
        check(opencl, sample, step_of(sample), extra=1)


STRIDED = {
    "rows of a wider matrix": ((9, 20), (20, 30), lambda v: View(v, 3, (9, 20), (27, 1))),
    "every second column": ((9, 20), (20, 30), lambda v: View(v, 1, (9, 20), (41, 2))),
    "rows upside down": ((9, 20), (20, 30), lambda v: View(v, 160, (9, 20), (-20, 1))),
    "columns reversed": ((9, 20), (20, 30), lambda v: View(v, 19, (9, 20), (20, -1))),
    "one row for all": ((9, 20), (20, 30), lambda v: View(v, 5, (9, 20), (0, 1))),
    "batches that share a matrix": (
        (2, 3, 9, 20),
        (2, 3, 20, 30),
        lambda v: View(v, 0, (2, 3, 9, 20), (180, 0, 20, 1)),
    ),
    "heads of attention": (
        (2, 3, 9, 20),
        (2, 3, 20, 30),
        lambda v: View(v, 0, (2, 3, 9, 20), (540, 20, 60, 1)),
    ),
}


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("side", [0, 1])
def test_operands_may_lie_anyhow(opencl: Machine, name: str, side: int) -> None:
    left, right, view = STRIDED[name]
    for op in (MatMul(), MatMul(transpose_a=True), MatMul(transpose_b=True)):
        shapes = [left, right]
        if side == 1:  # the strided shape is the right one
            shapes = [(*left[:-2], left[-1], left[-2]), left]
            shapes[0], shapes[1] = (*left[:-2], 30, left[-2]), left
        a = shapes[0] if not op.transpose_a else (*shapes[0][:-2], *shapes[0][:-3:-1])
        b = shapes[1] if not op.transpose_b else (*shapes[1][:-2], *shapes[1][:-3:-1])
        if (op.transpose_a and side == 0) or (op.transpose_b and side == 1):
            continue  # the strided side is given as is
        sample = Sample(op, (TensorType(a), TensorType(b)))
        step = step_of(sample)
        value = list(step.reads)[side]
        base = Value(TensorType((1200,)), "base")
        step = replace(step, reads={**step.reads, value: view(base)})
        check(opencl, _same_numbers(sample), step, extra=1)


def _same_numbers(sample: Sample) -> Sample:
    """Elements that a view shows many times must be one number: all of a kind."""
    return replace(sample, low=1.5, high=1.5)


def test_the_result_may_have_rows_apart(opencl: Machine) -> None:
    for op in (MatMul(), MatMul(transpose_b=True), MatMul(True, True)):
        sample = matrices(op, 10, 33, 21)
        step = step_of(sample)
        (out,) = step.writes
        for strides in ((40, 1), (1, 10), (45, 2)):
            base = Value(TensorType((500,)), "base")
            apart = replace(step, writes={out: View(base, 4, out.shape, strides)})
            check(opencl, sample, apart, extra=1)


def test_a_long_sum_with_few_results_is_shared_among_groups(opencl: Machine) -> None:
    for op in (MatMul(transpose_a=True), MatMul(transpose_b=True), MatMul(True, True)):
        sample = matrices(op, 3, 100_011, 5)
        step = step_of(sample)
        config = KERNEL.defaults(step, opencl.info)
        rendered = KERNEL.render(step, config, opencl.info)
        assert config["PARTS"] > 1
        assert rendered.launches[0].global_size[0] >= 8
        check(opencl, sample, step)


@pytest.mark.parametrize(
    ("op", "template"),
    [
        (MatMul(), "matmul"),
        (MatMul(transpose_b=True), "matmul_dot"),
        (MatMul(transpose_a=True), "matmul"),
        (MatMul(True, True), "matmul"),
    ],
)
def test_every_transposition_of_dense_operands_uses_full_vectors(op: MatMul, template: str) -> None:
    scheme = scheme_of(product_of(step_of(matrices(op, 64, 64, 64))), 16)
    assert (scheme.template, scheme.lanes) == (template, 16)
