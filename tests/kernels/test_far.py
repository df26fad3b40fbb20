"""Values too large for element numbers of 32 bits: wider numbers, or a refusal that says so."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgrad.backends.api import Backend
from pocketgrad.backends.null import NullBackend
from pocketgrad.base.errors import DeviceError
from pocketgrad.engine.compile import compile_graph, plan_graph
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType
from pocketgrad.kernels import loops
from pocketgrad.ops.arithmetic import mul
from pocketgrad.ops.pool import max_pool2d
from pocketgrad.ops.reduce import sum_

LARGE = 2**31


def rows(n: int, columns: int) -> Graph:
    with Builder() as builder:
        x = builder.input(TensorType((n, columns)), "x")
        y = mul(x, 2.0)
        return builder.graph([y, sum_(y, 1), sum_(y, 0)])


def index_types(graph: Graph) -> set[str]:
    _, lowered = plan_graph(graph, NullBackend())
    launches = [launch for low in lowered for launch in low.rendered.launches]
    return {dict(launch.source.defines)["INDEX"] for launch in launches}


def test_loops_number_many_elements_with_64_bits() -> None:
    assert index_types(rows(LARGE // 64, 64)) == {"long"}
    assert index_types(rows(64, 64)) == {"int"}


def test_loops_compute_the_same_with_64_bits(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "index_type", lambda *views, items: "long")
    for shape in ((70, 33), (3, 40_000), (40_000, 3)):
        executable = compile_graph(rows(*shape), backend, poison=True)
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        executable.run({"x": x})
        for output, expected in zip(
            executable.plan.graph.outputs, (2 * x, (2 * x).sum(1), (2 * x).sum(0)), strict=True
        ):
            np.testing.assert_allclose(executable.read(output.name), expected, 1e-4, 1e-2)


def test_a_kernel_without_64_bits_refuses() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((LARGE // 1024, 1, 32, 32)), "x")
        graph = builder.graph([max_pool2d(x, 2)])
    with pytest.raises(DeviceError, match=r"max_pool2d on .* use a smaller batch"):
        plan_graph(graph, NullBackend())
