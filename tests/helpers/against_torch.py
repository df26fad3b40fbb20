"""A function on values and one on tensors: same results, same gradients, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array, dtype_of, float32
from pocketgrad.ir.core import TensorType, Value
from tests.helpers.evaluate import evaluate
from tests.helpers.gradcheck import gradient_graph
from tests.helpers.tolerance import assert_close

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """Inputs are shapes (random floats between ``low`` and ``high``) or integer and bool arrays."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    ins: tuple[Shape | Array, ...]
    low: float = -2.0
    high: float = 2.0
    single: bool = False  # PyTorch itself computes with constants in single precision


def compare(case: Case, seed: int = 7) -> None:
    """Fail where results or the gradients of the float inputs differ."""
    import torch

    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(case.low, case.high, i) if isinstance(i, tuple) else i for i in case.ins]
    tensors = [torch.tensor(a, requires_grad=a.dtype == np.float64) for a in arrays]
    theirs = outputs(case.theirs(*tensors))
    flat = torch.cat([t.reshape(-1) for t in theirs if t.dtype == torch.float64])
    cotangent = rng.standard_normal(flat.shape)
    flat.backward(torch.tensor(cotangent))

    types = [TensorType(a.shape, dtype_of(a)) for a in arrays]
    graph = gradient_graph(lambda *xs: outputs(case.ours(*xs)), types)
    feeds = {f"x{i}": a for i, a in enumerate(arrays)} | {"seed": cotangent}
    known = evaluate(graph, feeds)
    found = [known[v] for v in graph.outputs]
    wanted = [t.detach().numpy() for t in theirs]
    grads = [t.grad.numpy() for t in tensors if t.grad is not None]
    assert len(found) == len(wanted) + len(grads)
    for i, (a, b) in enumerate(zip(found, wanted + grads, strict=True)):
        what = f"output {i}" if i < len(wanted) else f"gradient {i - len(wanted)}"
        dtype = float32 if case.single and a.dtype == np.float64 else dtype_of(a)
        assert_close(a, b, dtype, terms=1000, what=what)


def outputs(found: Value | Sequence[Value]) -> tuple[Any, ...]:
    """One or several, as a tuple."""
    return tuple(found) if isinstance(found, tuple | list) else (found,)
