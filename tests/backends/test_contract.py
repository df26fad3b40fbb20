"""What ``backends/api.py`` promises, on every backend."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.helpers.canary import WatchingBackend

from pocketgrad.backends.api import Backend, stages
from pocketgrad.backends.null import NullBackend
from pocketgrad.base.dtypes import Array, float32, int64, uint8
from pocketgrad.base.errors import DeviceError, DtypeError, ShapeError, UnknownNameError
from pocketgrad.engine.compile import compile_graph, plan_graph
from pocketgrad.engine.executable import Executable
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType
from pocketgrad.ops.arithmetic import add, cast, mul, neg
from pocketgrad.ops.reduce import sum_
from pocketgrad.trace.clock import align


def contents(backend: Backend, buffer: object, nbytes: int) -> Array:
    out = np.empty(nbytes, np.uint8)
    backend.read(buffer, 0, out)
    return out


def counting_graph() -> Graph:
    """Adds its input to a state, and tells the sum of the new state."""
    with Builder() as builder:
        state = builder.input(TensorType((33,)), "state")
        x = builder.input(TensorType((33,)), "x")
        new = add(state, x)
        total = sum_(new)
        total.name = "total"
        return builder.graph([total], {state: new})


def test_what_is_written_is_read_back(backend: Backend) -> None:
    buffer = backend.alloc(1000)
    backend.fill(buffer, 7)
    data = np.arange(50, dtype=np.float32)
    backend.write(buffer, 64, data)
    out = np.empty_like(data)
    backend.read(buffer, 64, out)
    np.testing.assert_array_equal(out, data)
    whole = contents(backend, buffer, 1000)
    assert (whole[:64] == 7).all()
    assert (whole[264:] == 7).all()


def test_a_written_array_may_change_at_once(backend: Backend) -> None:
    """Uploads travel while the program goes on."""
    buffers = [backend.alloc(4 << 20) for _ in range(8)]
    data = np.empty(1 << 20, np.float32)
    for i, buffer in enumerate(buffers):
        data[:] = i
        backend.write(buffer, 0, data)
    data[:] = -1
    for i, buffer in enumerate(buffers):
        out = np.empty_like(data)
        backend.read(buffer, 0, out)
        assert (out == i).all()


def test_scattered_and_scalar_and_empty_arrays_can_be_written(backend: Backend) -> None:
    buffer = backend.alloc(64)
    backend.fill(buffer, 0)
    backend.write(buffer, 0, np.arange(32, dtype=np.uint8)[::2])
    backend.write(buffer, 32, np.asarray(5, np.int32))
    backend.write(buffer, 0, np.empty((0, 3), np.float32))
    found = contents(backend, buffer, 64)
    assert found[:16].tolist() == list(range(0, 32, 2))
    assert found[32:36].view(np.int32)[0] == 5


def test_a_buffer_of_no_bytes_can_be_had(backend: Backend) -> None:
    assert backend.alloc(0) is not None


def test_a_run_follows_the_writes_before_it_and_a_read_the_runs(backend: Backend) -> None:
    executable = compile_graph(counting_graph(), backend)
    for step in range(1, 21):
        executable.run({"x": np.full(33, step, np.float32)})
    assert executable.read("total") == 33 * 210
    np.testing.assert_array_equal(executable.read("state"), np.full(33, 210, np.float32))


def test_state_can_be_set_between_runs(backend: Backend) -> None:
    executable = compile_graph(counting_graph(), backend)
    executable.write("state", np.full(33, 2, np.float32))
    executable.run({"x": np.ones(33, np.float32)})
    assert executable.read("total") == 99


def test_steps_can_be_run_one_by_one(backend: Backend) -> None:
    executable = compile_graph(counting_graph(), backend)
    executable.write("x", np.ones(33, np.float32))
    for position in range(len(executable.plan.steps)):
        executable.bound.run_step(position)
    assert executable.read("total") == 33


def test_empty_values_need_no_launch(backend: Backend) -> None:
    with Builder() as builder:
        x = builder.input(TensorType((0, 5)), "x")
        out, total = mul(x, 2.0), sum_(x)
        graph = builder.graph([out, total])
    executable = compile_graph(graph, WatchingBackend(backend), poison=True)
    executable.run({"x": np.empty((0, 5), np.float32)})
    assert executable.read(out.name).shape == (0, 5)
    assert executable.read(total.name) == 0


def test_all_element_types_travel(backend: Backend) -> None:
    with Builder() as builder:
        x = builder.input(TensorType((5,), uint8), "x")
        y = builder.input(TensorType((5,), int64), "y")
        graph = builder.graph([cast(x, float32), neg(y)])
    executable = compile_graph(graph, backend)
    big = np.asarray([1 << 40, -7, 0, 3, -(1 << 62)])
    executable.run({"x": np.asarray([0, 1, 127, 128, 255], np.uint8), "y": big})
    first, second = (executable.read(v.name) for v in graph.outputs)
    assert first.tolist() == [0, 1, 127, 128, 255]
    np.testing.assert_array_equal(second, -big)


def test_mistakes_are_told(backend: Backend) -> None:
    executable = compile_graph(counting_graph(), backend)
    with pytest.raises(ShapeError, match=r"'x' has shape \(33,\), got an array of \(3,\)"):
        executable.run({"x": np.ones(3, np.float32)})
    with pytest.raises(DtypeError, match=r"'x' holds float32, got float64; convert it with"):
        executable.run({"x": np.ones(33)})
    with pytest.raises(UnknownNameError, match="total"):
        executable.read("totl")


def test_a_buffer_beyond_the_device_is_refused(backend: Backend) -> None:
    limit = backend.info.max_alloc_nbytes
    if limit > 1 << 60:
        return  # the reference has no limit of its own
    with pytest.raises(DeviceError, match=r"allows [\d,]+ bytes in one buffer, [\d,]+ are needed"):
        backend.alloc(limit + 1)


def test_launches_tell_when_they_ran_and_on_whose_clock(backend: Backend) -> None:
    """Times rise within a launch, launches of one queue follow each other, ties enclose the run."""
    executable = compile_graph(counting_graph(), backend)
    executable.run({"x": np.ones(33, np.float32)})
    backend.finish()
    profiling = backend.profiling()
    before = profiling.ties()
    for _ in range(2):
        executable.run({"x": np.ones(33, np.float32)})
    ran = profiling.take()
    after = profiling.ties()
    assert profiling.take() == []
    launches = [r for r in ran if r.kind == "launch"]
    assert [r.number for r in launches] == [*range(executable.bound.launches)] * 2
    assert {r.queue for r in launches} == set(before) == set(after)
    for r in ran:
        assert r.queued_ns <= r.submitted_ns <= r.start_ns <= r.end_ns
    for first, second in pairwise(launches):
        assert first.end_ns <= second.start_ns
    for queue in before:
        clock = align([before[queue], after[queue]])
        assert clock.error_ns < 1e9
        mine = [r for r in launches if r.queue == queue]
        assert before[queue].before_ns <= clock.host_ns(mine[0].start_ns) + clock.error_ns
        assert clock.host_ns(mine[-1].end_ns) - clock.error_ns <= after[queue].after_ns
    profiling.on = False
    executable.run()
    assert profiling.take() == []
    profiling.close()
    executable.run()
    assert executable.read("total") == 33 * 5
    assert len(executable.bound.owners) == executable.bound.launches
    assert {p for owner in executable.bound.owners for p in owner} <= set(
        range(len(executable.plan.steps))
    )


def test_the_null_backend_plans_and_refuses_to_compute() -> None:
    backend = NullBackend()
    plan, lowered = plan_graph(counting_graph(), backend)
    executable = Executable(plan, lowered, backend)
    assert executable.bound.launches == len(stages(lowered))
    with pytest.raises(DeviceError, match="plans and costs a step but cannot compute it"):
        executable.run({"x": np.ones(33, np.float32)})
    with pytest.raises(DeviceError, match="cannot compute it"):
        executable.read("total")
    with pytest.raises(DeviceError, match="cannot compute it"):
        backend.profiling()
