"""Many samples as one graph, so that a device builds few programs; each output knows its sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pocketgrad.backends.api import Backend
from pocketgrad.base.dtypes import Array, float16, float32
from pocketgrad.engine.compile import compile_graph
from pocketgrad.ir.build import Builder, emit_all
from pocketgrad.ir.core import Graph, Sample, Value
from pocketgrad.passes.autodiff import gradients
from tests.helpers.canary import WatchingBackend
from tests.helpers.evaluate import evaluate
from tests.helpers.gradcheck import array_for, joined, reduction_length
from tests.helpers.tolerance import assert_close


@dataclass(frozen=True)
class Case:
    """Samples in one graph, their feeds, and for each output what made it."""

    graph: Graph
    feeds: dict[str, Array]
    origin: dict[Value, Sample]


def forward(samples: Sequence[Sample], seed: int = 0) -> Case:
    """The outputs of every sample."""
    return _case(samples, seed, lambda _, xs, outs: outs)


def backward(samples: Sequence[Sample], seed: int = 0) -> Case:
    """The gradients of every sample's float inputs, given a random cotangent of all its outputs."""

    def grads(builder: Builder, xs: Sequence[Value], outs: Sequence[Value]) -> list[Value]:
        floats = [v for v in outs if v.dtype.is_float]
        if not floats:
            return []
        loss = joined(floats)
        ct = builder.input(loss.type, f"{xs[0].name}.ct")
        found = gradients(builder, loss, [x for x in xs if x.dtype.is_float], ct)
        return [g for g in found if g is not None]

    return _case(samples, seed, grads)


def _case(
    samples: Sequence[Sample],
    seed: int,
    results: Callable[[Builder, Sequence[Value], Sequence[Value]], Sequence[Value]],
) -> Case:
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    origin: dict[Value, Sample] = {}
    with Builder() as builder:
        for i, sample in enumerate(samples):
            xs = [builder.input(t, f"s{i}.x{j}") for j, t in enumerate(sample.ins)]
            feeds |= {x.name: array_for(x.type, sample, rng) for x in xs}
            origin |= dict.fromkeys(results(builder, xs, emit_all(sample.op, *xs)), sample)
        cts = [v for v in builder.inputs if v.name not in feeds]
        feeds |= {v.name: rng.standard_normal(v.shape).astype(v.dtype.numpy) for v in cts}
        return Case(builder.graph(list(origin)), feeds, origin)


def check(case: Case, backend: Backend) -> None:
    """Run in a poisoned arena, every byte watched; compare every output with the reference."""
    executable = compile_graph(case.graph, WatchingBackend(backend), poison=True)
    executable.run(case.feeds)
    expected = evaluate(case.graph, case.feeds)
    for value, sample in case.origin.items():
        found = executable.read(value.name)
        types = ", ".join(map(str, sample.ins))
        what = f"{sample.op} of {types}: {value}"
        assert_close(found, expected[value], value.dtype, _terms(sample, value), what)


def _terms(sample: Sample, value: Value) -> int:
    """The longest sum an output element takes part in; a gradient may sum over a broadcast."""
    outs = sample.op.infer(*sample.ins)
    largest = max((t.size for t in (*sample.ins, *outs)), default=1)
    spread = -(-largest // max(1, value.type.size))
    return max(reduction_length(sample), spread)


def in_half(samples: Sequence[Sample]) -> list[Sample]:
    """The samples with float16 wherever they have float32, in inputs and attributes."""
    return [
        replace(
            s,
            op=replace(s.op, **{k: float16 for k, v in s.op.attributes().items() if v is float32}),
            ins=tuple(replace(t, dtype=float16) if t.dtype is float32 else t for t in s.ins),
        )
        for s in samples
    ]
