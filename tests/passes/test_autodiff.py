"""Reverse mode: what is asked for and nothing else; what cannot be differentiated says so."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate

from pocketgrad.base.errors import NoGradientError, ShapeError
from pocketgrad.ir.build import Builder, emit_all
from pocketgrad.ir.core import TensorType
from pocketgrad.ops.arithmetic import Detach, add, detach, mul
from pocketgrad.ops.extremes import argmax
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.move import split
from pocketgrad.ops.reduce import sum_
from pocketgrad.ops.transcendental import relu
from pocketgrad.passes.autodiff import gradients
from pocketgrad.passes.cleanup import drop_dead


def test_frozen_parameters_and_inputs_cost_no_backward_work() -> None:
    with Builder() as builder:
        x, w1, w2 = (builder.input(TensorType((4, 4)), n) for n in ("x", "w1", "w2"))
        loss = sum_(matmul(relu(matmul(x, w1)), w2))
        (dw2,) = gradients(builder, loss, [w2])
        assert dw2 is not None
        graph = drop_dead(builder.graph([dw2]))
    backward = [n.op.label() for n in graph.nodes if n.phase == "backward"]
    assert backward.count("mat_mul") == 1  # of w2: not through the activation, not into w1 or x
    assert "where" not in backward


def test_what_the_loss_does_not_depend_on_has_no_gradient() -> None:
    with Builder() as builder:
        x, y = (builder.input(TensorType((3,)), n) for n in "xy")
        dx, dy = gradients(builder, sum_(x), [x, y])
    assert dx is not None
    assert dy is None


def test_a_detached_value_stops_the_gradient() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((3,)), "x")
        (dx,) = gradients(builder, sum_(mul(detach(x), 2.0)), [x])
        (both,) = gradients(builder, sum_(mul(detach(x), x)), [x])
        assert both is not None
        graph = builder.graph([both])
    assert dx is None
    feeds = {"x": np.asarray([1, 2, 3], np.float32)}
    np.testing.assert_array_equal(evaluate(graph, feeds)[both], feeds["x"])


def test_a_value_used_twice_gets_the_sum() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((3,)), "x")
        (dx,) = gradients(builder, sum_(add(mul(x, x), mul(x, 3.0))), [x])
        assert dx is not None
        graph = builder.graph([dx])
    feeds = {"x": np.asarray([1, -2, 4], np.float32)}
    np.testing.assert_array_equal(evaluate(graph, feeds)[dx], 2 * feeds["x"] + 3)


def test_outputs_nobody_reads_need_no_cotangent() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((6,)), "x")
        first, _, _ = split(x, 2)
        (dx,) = gradients(builder, sum_(first), [x])
        assert dx is not None
        graph = builder.graph([dx])
    found = evaluate(graph, {"x": np.zeros(6, np.float32)})[dx]
    np.testing.assert_array_equal(found, [1, 1, 0, 0, 0, 0])


def test_backward_nodes_carry_the_layer_of_their_forward() -> None:
    with Builder() as builder:
        x, w = (builder.input(TensorType((4, 4)), n) for n in "xw")
        with builder.scope("fc"):
            y = matmul(x, w)
        gradients(builder, sum_(y), [w])
    backward = [n for n in builder.nodes if n.phase == "backward"]
    assert {n.scope for n in backward if n.op.label() == "mat_mul"} == {"fc"}


def test_a_loss_of_several_numbers_is_refused() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((3,)), "x")
        with pytest.raises(ShapeError, match=r"needs a scalar loss.*average it first"):
            gradients(builder, mul(x, 2.0), [x])


def test_integers_carry_no_gradient() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((3,)), "x")
        assert argmax(x).dtype.name == "int32"
        assert Detach.has_gradient is False
        (dx,) = gradients(builder, sum_(x), [x])
    assert dx is not None


def test_a_wrong_rule_is_named_with_its_layer() -> None:
    class Stubborn(Detach):
        def vjp(self, inputs, outputs, cts):
            raise NoGradientError("stubborn has no gradient")

    with Builder() as builder:
        x = builder.input(TensorType((3,)), "x")
        with builder.scope("head"):
            (y,) = emit_all(Stubborn(), x)
        with pytest.raises(NoGradientError, match=r"stubborn has no gradient .in layer 'head'."):
            gradients(builder, sum_(y), [x])
