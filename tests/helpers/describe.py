"""Trace a module as the trainer does, and work it out with the plain evaluator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array, dtype_of, int32
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType, Value
from pocketgrad.nn.module import Module
from pocketgrad.nn.tracing import tracing
from pocketgrad.ops.arithmetic import add, mul
from pocketgrad.ops.reduce import sum_
from pocketgrad.ops.tensor import Tensor
from pocketgrad.passes.autodiff import gradients
from tests.helpers.evaluate import evaluate


@dataclass(frozen=True)
class Outcome:
    """What a module gave. Gradients are of Σ outputs · directions, where there is any."""

    outputs: list[Array]
    directions: list[Array]
    gradients: dict[str, Array]
    updates: dict[str, Array]
    graph: Graph


def outcome(
    module: Module, *arrays: Array, training: bool = True, call: Callable[..., Any] | None = None
) -> Outcome:
    """Work out ``module`` (or ``call``, which uses it) on arrays, in float64."""
    module.initialise(0)
    rng = np.random.default_rng(3)
    feeds: dict[str, Array] = {"seed": np.array(7, np.int32), "step": np.array(1, np.int32)}
    with Builder(Tensor) as builder:

        def given(name: str, array: Array) -> Value:
            feeds[name] = array.astype(np.float64) if array.dtype == np.float32 else array
            return builder.input(TensorType(array.shape, dtype_of(feeds[name])), name)

        seed, step = (builder.input(TensorType((), int32), n) for n in ("seed", "step"))
        values = {name: given(name, tensor.data) for name, tensor in module.tensors()}
        inputs = [given(f"input{i}", array) for i, array in enumerate(arrays)]
        with tracing(values, training, seed, step) as trace:
            outputs = _flat((call or module)(*inputs))
        directions = [rng.standard_normal(v.shape) for v in outputs]
        total = None
        for i, (output, direction) in enumerate(zip(outputs, directions, strict=True)):
            term = sum_(mul(output, given(f"direction{i}", direction)))
            total = term if total is None else add(total, term)
        assert total is not None
        wrt = {n: values[n] for n, p in module.named_parameters() if p.trainable}
        wrt |= {v.name: v for v in inputs if v.dtype.is_float}
        found = zip(wrt, gradients(builder, total, list(wrt.values())), strict=True)
        grads = {name: ct for name, ct in found if ct is not None}
        graph = builder.graph([*outputs, *grads.values(), *trace.updates.values()])
    known = evaluate(graph, feeds)
    return Outcome(
        [known[v] for v in outputs],
        directions,
        {name: known[v] for name, v in grads.items()},
        {name: known[v] for name, v in trace.updates.items()},
        graph,
    )


def _flat(result: Any) -> list[Value]:
    if isinstance(result, Value):
        return [result]
    return [] if result is None else [v for part in result for v in _flat(part)]
