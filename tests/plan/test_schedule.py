"""Named cases of the schedule, each once wrong or easily so, run through real backends."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate
from tests.helpers.plan_oracle import audit

from pocketgrad.backends.api import Backend
from pocketgrad.backends.null import NullBackend
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import GraphError
from pocketgrad.engine.compile import compile_graph, plan_graph
from pocketgrad.ir.build import Builder, emit_all
from pocketgrad.ir.core import Graph, TensorType, Value
from pocketgrad.ir.verify import verify
from pocketgrad.ops.arithmetic import add, mul, neg
from pocketgrad.ops.conv import conv2d
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.move import concat, flip, reshape, slice_, transpose
from pocketgrad.ops.pool import MaxPool2d, max_pool2d
from pocketgrad.ops.reduce import sum_
from pocketgrad.plan.domain import analyse, loopable


def check(graph: Graph, backend: Backend) -> list[str]:
    """Compare with the meaning of the graph; the names of the steps."""
    feeds = {
        v.name: np.arange(v.type.size, dtype=v.dtype.numpy).reshape(v.shape) + i
        for i, v in enumerate(graph.inputs)
    }
    audit(*plan_graph(graph, NullBackend()))
    executable = compile_graph(graph, backend, poison=True)
    for step in executable.plan.steps:
        domain = analyse(step.nodes) if all(map(loopable, step.nodes)) else None
        assert domain is None or all(map(domain.storable, step.writes)), step.name
    executable.run(feeds)
    expected = evaluate(graph, feeds)
    wanted: dict[str, Array] = {v.name: expected[v] for v in graph.outputs}
    wanted |= {old.name: expected[new] for old, new in graph.updates.items()}
    for name, array in wanted.items():
        np.testing.assert_array_equal(executable.read(name), array, name)
    return [step.name for step in executable.plan.steps]


def inputs(builder: Builder, *shapes: tuple[int, ...]) -> list[Value]:
    return [builder.input(TensorType(s), f"x{i}") for i, s in enumerate(shapes)]


def test_two_donated_inputs_may_change_places(backend: Backend) -> None:
    with Builder() as builder:
        a, b = inputs(builder, (33,), (33,))
        graph = builder.graph([add(a, b)], {a: b, b: a})
    check(graph, backend)


def test_a_donated_input_may_take_what_another_was(backend: Backend) -> None:
    with Builder() as builder:
        a, b = inputs(builder, (33,), (33,))
        graph = builder.graph([], {a: add(a, 1.0), b: a})
    check(graph, backend)


def test_a_donated_input_may_be_reversed(backend: Backend) -> None:
    with Builder() as builder:
        (a,) = inputs(builder, (33,))
        graph = builder.graph([neg(a)], {a: flip(a, 0)})
    check(graph, backend)


def test_an_output_may_be_a_part_of_what_a_donated_input_was(backend: Backend) -> None:
    with Builder() as builder:
        (a,) = inputs(builder, (33,))
        graph = builder.graph([slice_(a, 0, 3, 9), reshape(a, (3, 11))], {a: mul(a, 2.0)})
    check(graph, backend)


def test_an_output_may_not_be_a_donated_input() -> None:
    with Builder() as builder:
        (a,) = inputs(builder, (3,))
        graph = builder.graph([a], {a: neg(a)})
    with pytest.raises(GraphError, match=r"output %x0: float32\[3\] is a donated input"):
        verify(graph)


def test_a_result_may_take_the_place_of_what_another_in_its_step_still_reads(
    backend: Backend,
) -> None:
    with Builder() as builder:
        a, b, c = inputs(builder, (64,), (64,), (64,))
        first, second = add(b, 1.0), add(a, c)
        joint = mul(first, second)
        graph = builder.graph([second, joint], {a: first})
    assert len(check(graph, backend)) == 1


def test_earlier_work_joined_behind_a_product_leaves_it_the_root(backend: Backend) -> None:
    with Builder() as builder:
        a, b = inputs(builder, (1, 1), (1,))
        early = neg(b)
        graph = builder.graph([add(early, matmul(a, a))])
    check(graph, backend)


def test_a_kernel_whose_first_output_nobody_reads_still_runs(backend: Backend) -> None:
    with Builder() as builder:
        (a,) = inputs(builder, (1, 2, 6, 6))
        _, index = emit_all(MaxPool2d((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), ceil_mode=False), a)
        graph = builder.graph([index])
    check(graph, backend)


def test_parts_are_written_into_their_join(backend: Backend) -> None:
    with Builder() as builder:
        a, b = inputs(builder, (4, 5), (4, 7))
        graph = builder.graph([concat([neg(a), mul(b, 2.0)], 1)])
    assert check(graph, backend) == ["neg", "mul"]


def test_a_part_joined_twice_is_copied_once(backend: Backend) -> None:
    with Builder() as builder:
        (a,) = inputs(builder, (4, 5))
        part = neg(a)
        graph = builder.graph([concat([part, part], 1)])
    assert check(graph, backend) == ["neg", "cast"]


def test_views_need_no_launch(backend: Backend) -> None:
    with Builder() as builder:
        (a,) = inputs(builder, (4, 6))
        seen = slice_(flip(transpose(a, (1, 0)), 0), 1, 1, 4, 2)
        graph = builder.graph([sum_(seen)])
    assert check(graph, backend) == ["sum"]


def test_a_step_in_place_needs_no_arena() -> None:
    with Builder() as builder:
        a, b = inputs(builder, (4096,), (4096,))
        graph = builder.graph([], {a: add(a, mul(b, 0.5))})
    plan, _ = plan_graph(graph, NullBackend())
    assert plan.arena_nbytes == 0
    assert len(plan.steps) == 1


def test_groups_joined_late_are_seen_on_the_way_to_earlier_ones(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketgrad.plan.fusion.FEW", 0)  # these would be too few to join
    n = 3
    with Builder() as builder:
        x, z, m = inputs(builder, (n,), (n,), (n, n))
        early = neg(x)
        product = matmul(reshape(early, (1, n)), m)
        other = mul(z, 2.0)
        joined = add(early, flip(other, 0))  # one group with `early`, and needs `other`
        graph = builder.graph([joined, add(other, reshape(product, (n,)))])
    assert len(check(graph, backend)) == 4


def test_a_value_needed_outside_through_a_view_is_stored_once(backend: Backend) -> None:
    with Builder() as builder:
        x, wide, m = inputs(builder, (1, 30, 2, 2), (1, 30, 64), (30, 5))
        column = neg(reshape(max_pool2d(x, 2), (30, 1)))
        seen = reshape(column, (1, 30, 1))
        graph = builder.graph([add(seen, wide), matmul(reshape(seen, (1, 30)), m)])
    check(graph, backend)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_a_convolution_adds_what_lies_in_a_join(backend: Backend, axis: int) -> None:
    with Builder() as builder:
        x, w, more = inputs(builder, (2, 2, 8, 8), (2, 2, 3, 3), (2, 2, 8, 8))
        part = mul(x, 2.0)
        summed = add(conv2d(neg(part), w, padding=1), part)
        graph = builder.graph([summed, concat([part, more], axis)])
    check(graph, backend)


def test_a_launch_has_no_more_arguments_than_every_device_takes() -> None:
    with Builder() as builder:
        values = inputs(builder, *[()] * 20)
        graph = builder.graph([add(values[i % 20], float(i)) for i in range(90)])
    _, lowered = plan_graph(graph, NullBackend())
    launches = [launch for low in lowered for launch in low.rendered.launches]
    assert max(len(launch.args) for launch in launches) * 16 <= 1024
