"""Which images lie channels-last, and what the schedule makes of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate

from pocketgrad.backends.null import NullBackend
from pocketgrad.backends.reference import ReferenceBackend
from pocketgrad.base.dtypes import int32
from pocketgrad.engine import compile as engine
from pocketgrad.engine.compile import compile_graph, plan_graph
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType, Value
from pocketgrad.nn.optim import SGD
from pocketgrad.ops.arithmetic import Cast, add
from pocketgrad.ops.conv import conv2d
from pocketgrad.ops.move import concat
from pocketgrad.ops.pool import max_pool2d
from pocketgrad.ops.reduce import sum_
from pocketgrad.ops.transcendental import relu
from pocketgrad.passes.autodiff import gradients
from pocketgrad.plan.schedule import Schedule, schedule
from pocketgrad.plan.views import View
from pocketgrad.train.step import Inputs, StepSpec, build_graph
from pocketgrad.zoo import card

LANES = 16
Model = Callable[[Value, list[Value]], Value]


def chain(x: Value, ws: list[Value]) -> Value:
    """Convolutions, pooling and a residual."""
    first = relu(conv2d(x, ws[0], padding=1))
    pooled = max_pool2d(first, 2)
    return add(pooled, relu(conv2d(pooled, ws[1], padding=1)))


def dense(x: Value, ws: list[Value]) -> Value:
    """Each convolution sees all channels made before it."""
    for w in ws:
        x = concat([x, relu(conv2d(relu(x), w, padding=1))], 1)
    return x


def training(model: Model, x: tuple[int, ...], *ws: tuple[int, int, int, int]) -> Graph:
    with Builder() as builder:
        batch = builder.input(TensorType(x), "x")
        weights = [builder.input(TensorType(w), f"w{i}") for i, w in enumerate(ws)]
        result = model(relu(conv2d(batch, weights[0], padding=1)), weights[1:])
        loss = sum_(result, (0, 1, 2, 3))
        grads = gradients(builder, loss, weights)
        return builder.graph([loss, *(g for g in grads if g is not None)])


BATCH = 2
CHAIN = training(chain, (BATCH, 3, 8, 8), (16, 3, 3, 3), (16, 16, 3, 3), (16, 16, 3, 3))
DENSE = training(
    dense, (BATCH, 3, 6, 6), (16, 3, 3, 3), *((12, 16 + 12 * i, 3, 3) for i in range(3))
)
CASES = pytest.mark.parametrize("graph", [CHAIN, DENSE], ids=["chain", "dense"])


def images(found: Schedule) -> list[View]:
    """Where the steps write batches of images."""
    views = [view for step in found.steps for view in step.writes.values()]
    return [view for view in views if len(view.shape) == 4 and view.shape[0] == BATCH]


def copies(found: Schedule) -> list[Value]:
    """Images that are only moved."""
    lone = [s.nodes[0] for s in found.steps if len(s.nodes) == 1]
    moved = [n.inputs[0] for n in lone if isinstance(n.op, Cast)]
    return [v for v in moved if len(v.shape) == 4 and v.shape[0] == BATCH]


@CASES
def test_nothing_is_reordered_between_image_ops(graph: Graph) -> None:
    found = schedule(graph, LANES)
    assert len(images(found)) > 5
    assert all(view.pitch is not None for view in images(found))
    assert not copies(found)


def test_channels_join_in_place_along_a_whole_chain() -> None:
    found = schedule(DENSE, LANES)
    pitches = {
        view.pitch for s in found.steps for v, view in s.writes.items() if v.shape[1:2] == (12,)
    }
    assert 16 + 3 * 12 in pitches


def test_wide_planes_of_few_channels_stay_row_major() -> None:
    def model(x: Value, ws: list[Value]) -> Value:
        return relu(conv2d(x, ws[0]))

    found = schedule(training(model, (BATCH, 1, 32, 32), (3, 1, 3, 3), (3, 3, 3, 3)), LANES)
    assert all(view.dense for view in images(found))


def test_a_device_without_lanes_has_row_major_images() -> None:
    assert all(view.dense for view in images(schedule(CHAIN)))


@CASES
def test_a_plan_means_the_same_wherever_images_lie(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in graph.inputs}
    expected = evaluate(graph, feeds)
    for lanes in (0, LANES):
        monkeypatch.setattr(engine, "schedule", lambda g, *_, lanes=lanes: schedule(g, lanes))
        executable = compile_graph(graph, ReferenceBackend(), poison=True)
        executable.run(feeds)
        for value in graph.outputs:
            found = executable.read(value.name)
            np.testing.assert_allclose(found, expected[value], 1e-4, 1e-3, err_msg=value.name)


@pytest.mark.parametrize(
    ("name", "batch", "image"),
    [("densenet40", 32, None), ("resnet50", 16, 32), ("googlenet", 4, 224)],
)
def test_cpus_reorder_nothing_inside_a_network(name: str, batch: int, image: int | None) -> None:
    """The null backend plans as a CPU does."""
    found = card(name)
    net = found.make()
    net.initialise(0)
    (x,) = found.sample(image)
    inputs = Inputs(TensorType((batch, *x.shape)), TensorType((batch,), int32))
    graph = build_graph(StepSpec(net, "cross_entropy", SGD(0.1)), inputs, "train")
    plan, lowered = plan_graph(graph, NullBackend())
    assert {low.kernel for low in lowered}.isdisjoint({"conv", "conv_grad_weight", "pool"})
    lone = [s.nodes[0] for s in plan.steps if len(s.nodes) == 1]
    assert not [n for n in lone if isinstance(n.op, Cast) and len(n.outputs[0].shape) == 4]
