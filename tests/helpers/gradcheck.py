"""One-op graphs from samples, inputs for them, and the check of a gradient against differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array, DType, float32
from pocketgrad.ir.build import Builder, emit_all
from pocketgrad.ir.core import Graph, Sample, TensorType, Value
from pocketgrad.passes.autodiff import gradients
from tests.helpers.evaluate import evaluate
from tests.helpers.tolerance import GRADIENT, STEP

Function = Callable[..., Sequence[Value]]


def with_floats(sample: Sample, dtype: DType) -> Sample:
    """The same sample with every float32 replaced, in inputs and attributes."""
    changed = {k: dtype for k, v in sample.op.attributes().items() if v is float32}
    ins = tuple(replace(t, dtype=dtype) if t.dtype is float32 else t for t in sample.ins)
    return replace(sample, op=replace(sample.op, **changed), ins=ins)


def inputs_for(sample: Sample, rng: np.random.Generator) -> dict[str, Array]:
    """An array for every input ``x0``, ``x1`` … of ``graph_of(sample)``."""
    return {f"x{i}": array_for(t, sample, rng) for i, t in enumerate(sample.ins)}


def array_for(type: TensorType, sample: Sample, rng: np.random.Generator) -> Array:
    """Random numbers within the sample's bounds."""
    if type.dtype.is_float:
        return np.asarray(rng.uniform(sample.low, sample.high, type.shape), type.dtype.numpy)
    return np.asarray(rng.integers(*sample.ints, type.shape), type.dtype.numpy)


def graph_of(sample: Sample) -> Graph:
    """The graph with this op alone."""
    return graph_from(lambda *xs: emit_all(sample.op, *xs), sample.ins)


def graph_from(function: Function, ins: Sequence[TensorType]) -> Graph:
    """The graph of what a function emits, given inputs ``x0``, ``x1`` …"""
    with Builder() as builder:
        xs = [builder.input(t, f"x{i}") for i, t in enumerate(ins)]
        return builder.graph(function(*xs))


def gradient_graph(function: Function, ins: Sequence[TensorType]) -> Graph:
    """As ``graph_from``; then the gradients of the float inputs, given cotangent ``seed``.

    The loss is the float outputs, flattened and joined; ``seed`` has that length. An input that the
    loss does not depend on has no output.
    """
    with Builder() as builder:
        xs = [builder.input(t, f"x{i}") for i, t in enumerate(ins)]
        outs = tuple(function(*xs))
        loss = joined([v for v in outs if v.dtype.is_float])
        seed = builder.input(loss.type, "seed")
        grads = gradients(builder, loss, [x for x in xs if x.dtype.is_float], seed)
        return builder.graph([*outs, *(g for g in grads if g is not None)])


def joined(values: Sequence[Value]) -> Value:
    """All elements of all values along one axis."""
    from pocketgrad.ops.move import concat, reshape

    return concat([reshape(v, (v.type.size,)) for v in values])


def check_gradient(
    function: Function, ins: Sequence[TensorType], feeds: Mapping[str, Array], seed: int = 0
) -> None:
    """Compare the slope along a random direction of all float inputs with central differences."""
    rng = np.random.default_rng(seed)
    with Builder() as builder:
        xs = [builder.input(t, f"x{i}") for i, t in enumerate(ins)]
        floats = [x for x in xs if x.dtype.is_float]
        loss = joined([v for v in function(*xs) if v.dtype.is_float])
        ct = builder.input(loss.type, "seed")
        grads = gradients(builder, loss, floats, ct)
        graph = builder.graph([loss, *(g for g in grads if g is not None)])
    weights = rng.standard_normal(loss.shape)
    directions = {x.name: rng.standard_normal(x.shape) for x in floats}

    def slope_at(shift: float) -> float:
        moved = {k: v + shift * directions[k] if k in directions else v for k, v in feeds.items()}
        out = evaluate(graph, {**moved, "seed": weights})[loss]
        return float(np.dot(out, weights))

    known = evaluate(graph, {**feeds, "seed": weights})
    terms = [
        known[g].ravel() * directions[x.name].ravel()
        for x, g in zip(floats, grads, strict=True)
        if g is not None
    ]
    found = float(sum(t.sum() for t in terms))
    expected = (slope_at(STEP) - slope_at(-STEP)) / (2 * STEP)
    size = float(sum(np.abs(t).sum() for t in terms)) + float(np.abs(known[loss] * weights).sum())
    assert abs(found - expected) <= GRADIENT * max(size, 1e-6), (
        f"the slope is {expected:.9g} by differences and {found:.9g} by the gradient"
    )


def reduction_length(sample: Sample) -> int:
    """How many terms one output element sums at most, judged by the op's arithmetic."""
    outs = sample.op.infer(*sample.ins)
    flops = sample.op.cost(sample.ins, outs).flops
    return max(1, flops // max(1, sum(prod(t.shape) for t in outs)))


def labelled(samples: Sequence[Sample]) -> list[Any]:
    """Samples as pytest parameters named by op and types."""
    import pytest

    named = []
    for sample in samples:
        types = "-".join(str(t) for t in sample.ins) or "none"
        given = ",".join(str(v) for v in sample.op.attributes().values())
        named.append(pytest.param(sample, id=f"{sample.op.label()}({given})-{types}"))
    return named
