"""Every op, every sample: what the op says about itself is true. Adding an op adds no code here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.gradcheck import check_gradient, graph_of, inputs_for, labelled, with_floats
from tests.helpers.tolerance import assert_close

from pocketgrad.base.dtypes import dtype_of, float16, float64
from pocketgrad.base.errors import NoGradientError
from pocketgrad.ir.build import Builder, emit_all
from pocketgrad.ir.core import Op, Sample, TensorType
from pocketgrad.ir.text import graph_text, parse
from pocketgrad.ir.verify import verify
from pocketgrad.ops import ALL, VOCABULARY

SAMPLES = labelled([sample for op in ALL for sample in op.samples()])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


@pytest.mark.parametrize("sample", SAMPLES)
def test_inferred_types_are_those_of_the_reference(sample: Sample, rng: Any) -> None:
    arrays = inputs_for(sample, rng).values()
    found = tuple(TensorType(a.shape, dtype_of(a)) for a in sample.op.ref(*arrays))
    assert sample.op.infer(*sample.ins) == found


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_reference_does_not_write_its_inputs(sample: Sample, rng: Any) -> None:
    arrays = inputs_for(sample, rng).values()
    for array in arrays:
        array.flags.writeable = False
    sample.op.ref(*arrays)  # NumPy raises at a write


@pytest.mark.parametrize("sample", SAMPLES)
def test_half_precision_is_stored_but_not_computed_with(sample: Sample, rng: Any) -> None:
    half = with_floats(sample, float16)
    stored = inputs_for(half, rng).values()
    found = half.op.ref(*stored)
    types = half.op.infer(*half.ins)
    assert types == tuple(TensorType(a.shape, dtype_of(a)) for a in found)
    wide = [a.astype(np.float32) if a.dtype == np.float16 else a for a in stored]
    for a, b, t in zip(found, sample.op.ref(*wide), types, strict=True):
        assert_close(a, b, t.dtype)


@pytest.mark.parametrize("sample", [p for p in SAMPLES if p.values[0].op.has_gradient])
def test_the_gradient_is_the_slope(sample: Sample, rng: Any) -> None:
    sample = with_floats(sample, float64)
    outs = sample.op.infer(*sample.ins)
    if not any(t.dtype.is_float for t in sample.ins) or not any(t.dtype.is_float for t in outs):
        return  # a sample on integers has no slope
    assert all(t.dtype is float64 for t in outs if t.dtype.is_float)
    check_gradient(lambda *xs: emit_all(sample.op, *xs), sample.ins, inputs_for(sample, rng))


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_printed_text_parses_back_equal(sample: Sample) -> None:
    graph = graph_of(sample)
    verify(graph)
    again = parse(graph_text(graph), VOCABULARY)
    assert graph_text(again) == graph_text(graph)
    assert [n.op for n in again.nodes] == [n.op for n in graph.nodes]


@pytest.mark.parametrize("sample", SAMPLES)
def test_cost_is_finite_and_not_negative(sample: Sample) -> None:
    outs = sample.op.infer(*sample.ins)
    cost = sample.op.cost(sample.ins, outs)
    assert isinstance(cost.flops, int)
    assert isinstance(cost.nbytes, int)
    assert cost.flops >= 0
    assert 0 <= cost.nbytes <= sum(t.nbytes for t in (*sample.ins, *outs)) * 2


@pytest.mark.parametrize("op", [op for op in ALL if not op.has_gradient], ids=lambda op: op.label())
def test_an_op_without_a_gradient_says_so(op: type[Op]) -> None:
    sample = next(op.samples())
    with Builder() as builder:
        xs = tuple(builder.input(t, f"x{i}") for i, t in enumerate(sample.ins))
        outs = emit_all(sample.op, *xs)
        if type(sample.op).vjp is Op.vjp:
            with pytest.raises(NoGradientError, match=sample.op.label()):
                sample.op.vjp(xs, outs, outs)
        else:
            assert sample.op.vjp(xs, outs, outs) == (None,) * len(xs)


@pytest.mark.parametrize("op", ALL, ids=lambda op: op.label())
def test_samples_are_deterministic_and_there_are_some(op: type[Op]) -> None:
    samples = list(op.samples())
    assert samples
    assert samples == list(op.samples())
    assert all(type(s.op) is op for s in samples)
