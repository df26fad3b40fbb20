"""The harness is tested: kernels that are slightly wrong must be caught."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.conftest import RUNTIMES, require_runtime
from tests.helpers.canary import WatchingBackend
from tests.helpers.conformance import check, forward
from tests.helpers.tolerance import assert_close

from pocketgrad.backends import open_backend
from pocketgrad.backends.api import Backend, Bound, Lowered
from pocketgrad.backends.reference import ReferenceBackend
from pocketgrad.base.dtypes import float32
from pocketgrad.engine.compile import compile_graph
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, Sample, TensorType, Value
from pocketgrad.kernels.spec import KernelSource
from pocketgrad.ops.arithmetic import neg
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.reduce import Sum
from pocketgrad.plan.plan import Slot, Step

PARAMS = [
    pytest.param(name, marks=[pytest.mark.device, getattr(pytest.mark, name)]) for name in RUNTIMES
]


@pytest.fixture(params=PARAMS)
def opencl(request: pytest.FixtureRequest) -> Backend:
    require_runtime(request.param)
    return open_backend(request.param)


class Edited:
    """A backend whose kernels are changed in one place."""

    def __init__(self, inner: Backend, old: str, new: str) -> None:
        self.inner, self.name, self.info = inner, inner.name, inner.info
        self.old, self.new = old, new

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def lower(self, step: Step, strict: bool = False) -> Lowered:
        low = self.inner.lower(step)
        launches = tuple(
            replace(launch, source=self._edited(launch.source)) for launch in low.rendered.launches
        )
        return replace(low, rendered=replace(low.rendered, launches=launches))

    def _edited(self, source: KernelSource) -> KernelSource:
        assert self.old in source.text, source.text
        return replace(source, text=source.text.replace(self.old, self.new))


class Sloppy(ReferenceBackend):
    """Writes one byte behind what it should, after every run of a step."""

    def bind(
        self,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, Any],
        slots: Mapping[Value, Slot],
        repeated: Collection[str] = (),
    ) -> Any:
        bound = super().bind(lowered, buffers, slots)
        run_step = bound.run_step

        def sloppy(position: int) -> None:
            run_step(position)
            for view in lowered[position].step.writes.values():
                slot = slots[view.base]
                buffers[slot.buffer][slot.offset + slot.nbytes] ^= 1

        bound.run_step = sloppy  # type: ignore[method-assign]  # the fault planted
        return bound


def negated(n: int) -> Graph:
    with Builder() as builder:
        return builder.graph([neg(builder.input(TensorType((n,)), "x"))])


def run(graph: Graph, backend: Backend) -> Bound:
    executable = compile_graph(graph, backend, poison=True)
    executable.run({v.name: np.ones(v.shape, v.dtype.numpy) for v in graph.inputs})
    backend.finish()
    return executable.bound


def test_one_byte_too_many_is_caught_behind_a_buffer() -> None:
    run(negated(64), WatchingBackend(ReferenceBackend()))
    with pytest.raises(AssertionError, match="reference for neg changed 1 bytes of 'arena'"):
        run(negated(64), WatchingBackend(Sloppy()))


def test_one_byte_too_many_is_caught_between_values() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((3, 3)), "x")
        a, b = matmul(x, x), matmul(x, x, transpose_b=True)
        graph = builder.graph([matmul(a, b)])
    run(graph, WatchingBackend(ReferenceBackend()))
    with pytest.raises(AssertionError, match="beyond its results"):
        run(graph, WatchingBackend(Sloppy()))


def test_a_kernel_that_writes_one_element_too_many_is_caught(opencl: Backend) -> None:
    """Behind 64 floats the arena ends: only a canary sees it."""
    run(negated(64), WatchingBackend(opencl))
    faulty = Edited(opencl, "low + 64, (INDEX)64)", "low + 64, (INDEX)64) + 1")
    run(negated(64), Edited(opencl, "kernel", "kernel"))
    with pytest.raises(AssertionError, match=r"loops for neg changed . bytes of 'arena' beyond"):
        run(negated(64), WatchingBackend(faulty))


def test_a_reduction_that_leaves_out_the_last_element_is_caught(opencl: Backend) -> None:
    case = forward([Sample(Sum((0,), keepdims=False), (TensorType((33,)),))])
    check(case, Edited(opencl, "kernel", "kernel"))
    with pytest.raises(AssertionError, match="off by"):
        check(case, Edited(opencl, "<= 33;", "<= 32;"))


def test_an_element_nobody_writes_is_caught_by_the_poison(opencl: Backend) -> None:
    case = forward([Sample(Sum((1,), keepdims=False), (TensorType((17, 3)),))])
    check(case, Edited(opencl, "kernel", "kernel"))
    with pytest.raises(AssertionError, match=r"off by inf at \(16,\) \(nan"):
        check(case, Edited(opencl, ", (INDEX)17)", ", (INDEX)16)"))


def test_a_result_wrong_by_a_thousandth_is_caught() -> None:
    expected = np.random.default_rng(0).standard_normal((17, 33)).astype(np.float32)
    assert_close(expected, expected, float32, terms=1000)
    with pytest.raises(AssertionError, match="off by"):
        assert_close(expected * np.float32(1.001), expected, float32, terms=1000)
