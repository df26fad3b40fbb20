"""Modules: names, sharing, freezing, what forward() sees, and errors that name the layer."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from tests.helpers.describe import outcome

from pocketgrad.base.dtypes import int32
from pocketgrad.base.errors import CheckpointError, GraphError, SettingError, ShapeError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import ModuleList, Sequential
from pocketgrad.nn.layers import Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.parameter import Buffer, Parameter
from pocketgrad.nn.tracing import tracing
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.tensor import Tensor


class Net(Module):
    def __init__(self):
        super().__init__()
        self.stem = Linear(3, 4)
        self.blocks = ModuleList([Sequential(Linear(4, 4), ReLU()) for _ in range(2)])
        self.scale = Parameter(np.ones(4))
        self.seen = Buffer(np.zeros((), np.int64))

    def forward(self, x):
        self.update_buffer("seen", add(self.seen, 1))  # type: ignore[arg-type]  # a Value in here
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x * self.scale


def test_names_follow_the_attributes_own_tensors_first():
    assert list(Net().state_dict()) == [
        "scale", "seen", "stem.weight", "stem.bias",
        "blocks.0.0.weight", "blocks.0.0.bias", "blocks.1.0.weight", "blocks.1.0.bias",
    ]  # fmt: skip


def test_nodes_carry_the_path_of_the_layer_that_emitted_them():
    graph = outcome(Net(), np.zeros((2, 3), np.float32)).graph
    forward = [n.scope for n in graph.nodes if n.phase == "forward" and n.op.label() == "mat_mul"]
    assert forward == ["stem", "blocks.0.0", "blocks.1.0"]
    assert {"stem", "blocks.0.0"} <= {n.scope for n in graph.nodes if n.phase == "backward"}


def test_a_parameter_is_a_value_inside_a_trace_and_an_array_outside():
    layer: Any = Linear(2, 3).initialise(1)
    outside = layer.weight
    assert isinstance(outside, Parameter)
    with Builder(Tensor) as builder:
        bound = {n: builder.input(p.type, n) for n, p in layer.named_parameters()}
        with tracing(bound):
            layer(builder.input(TensorType((5, 2)), "x"))
            inside = layer.weight
        assert inside is bound["weight"]
    assert layer.weight.data.shape == (3, 2)


def test_buffers_updated_twice_in_a_step_build_on_each_other():
    class Twice(Module):
        def __init__(self):
            super().__init__()
            self.inner = Net()

        def forward(self, x):
            return self.inner(x) + self.inner(x)

    assert outcome(Twice(), np.zeros((2, 3), np.float32)).updates["inner.seen"] == 2


def test_a_shared_parameter_is_one_parameter_under_two_names():
    first, second = Linear(3, 3), Linear(3, 3)
    second.weight = first.weight
    net = Sequential(first, second)
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    x = np.ones((2, 3), np.float32)
    got = outcome(net, x)
    w = net.state_dict()["0.weight"].astype(np.float64)
    h = x @ w.T + first.bias.data
    want = got.directions[0].T @ h + (got.directions[0] @ w).T @ x
    np.testing.assert_allclose(got.gradients["0.weight"], want, 1e-6)


def test_a_layer_used_twice_keeps_its_first_name():
    layer = Linear(3, 3)
    net = Sequential(layer, ReLU(), layer)
    assert [n for n, _ in net.named_modules()] == ["", "0", "1"]
    graph = outcome(net, np.ones((2, 3), np.float32)).graph
    assert {n.scope for n in graph.nodes if n.op.label() == "mat_mul"} == {"0"}


def test_frozen_parameters_get_no_gradient():
    net = Net()
    net.stem.requires_grad_(False)
    got = outcome(net, np.ones((2, 3), np.float32))
    assert "stem.weight" not in got.gradients
    assert "blocks.0.0.weight" in got.gradients
    assert net.parameter_count(trainable_only=True) == net.parameter_count() - 16


def test_adding_a_layer_leaves_the_first_numbers_of_others_as_they_are():
    small = Sequential(Linear(3, 4), Linear(4, 5)).initialise(3).state_dict()
    large = Sequential(Linear(3, 4), Linear(4, 5), Linear(5, 6)).initialise(3).state_dict()
    assert all(np.array_equal(small[name], large[name]) for name in small)
    assert not np.array_equal(small["0.weight"].ravel()[:4], small["1.weight"].ravel()[:4])


def test_initialise_fills_what_is_missing_and_overwrites_when_told():
    net = Sequential(Linear(3, 4)).initialise(1)
    first = net.state_dict()
    assert np.array_equal(net.initialise(2).state_dict()["0.weight"], first["0.weight"])
    again = net.initialise(2, overwrite=True).state_dict()
    assert not np.array_equal(again["0.weight"], first["0.weight"])
    same = net.initialise(1, overwrite=True).state_dict()
    assert np.array_equal(same["0.weight"], first["0.weight"])


def test_eval_of_a_part_holds_in_a_trace_of_training():
    class Asks(Module):
        def forward(self, x):
            modes.append(self.training)
            return x

    modes: list[bool] = []
    net = Sequential(Asks(), Asks())
    net[1].eval()
    for training in (True, False):
        with Builder(Tensor) as builder, tracing({}, training):
            net(builder.input(TensorType((1,)), "x"))
    assert modes == [True, False, False, False]


def test_a_copy_shares_nothing():
    net = Net().initialise(0)
    other = copy.deepcopy(net)
    other.stem.weight.data = np.zeros((4, 3))
    assert net.stem.weight.data.any()


def test_slices_of_a_sequence_share_its_layers():
    net = Sequential(Linear(3, 4), ReLU(), Linear(4, 2))
    assert list(net[:2].state_dict()) == ["0.weight", "0.bias"]
    assert net[-1] is net[2]
    assert len(net) == 3


def test_a_module_is_printed_with_its_parts():
    assert repr(Sequential(Linear(3, 4, bias=False), ReLU())) == (
        "Sequential(\n  (0): Linear(in_features=3, out_features=4, bias=False)\n  (1): ReLU()\n)"
    )


def test_calling_outside_of_a_step_says_what_to_use():
    with pytest.raises(GraphError, match=r"Trainer, compile_step or predict"):
        Linear(3, 4)(np.zeros((2, 3)))


def test_an_array_inside_a_step_is_refused():
    with Builder(Tensor), tracing({}), pytest.raises(GraphError, match=r"Linear got a NumPy array"):
        Linear(3, 4)(np.zeros((2, 3)))


def test_a_shape_that_does_not_fit_names_the_layer():
    net = Net()
    net.stem = Linear(3, 5)
    with pytest.raises(ShapeError, match=r"mat_mul in blocks\.0\.0: .*5.*4"):
        outcome(net, np.zeros((2, 3), np.float32))


def test_a_layer_that_is_not_part_of_the_model_is_named():
    class Loose(Module):
        def __init__(self):
            super().__init__()
            self.hidden = [Linear(3, 4)]  # a plain list hides its layers

        def forward(self, x):
            return self.hidden[0](x)

    with pytest.raises(GraphError, match=r"'weight' in 'linear' is not part of the model"):
        outcome(Loose(), np.zeros((2, 3), np.float32))


def test_a_missing_value_is_named():
    with Builder(Tensor) as builder, tracing({}):
        x = builder.input(TensorType((2, 3)), "x")
        with pytest.raises(GraphError, match=r"parameter '0\.weight' was given no value"):
            Sequential(Linear(3, 4))(x)


def test_a_buffer_keeps_its_type():
    class Wrong(Net):
        def forward(self, x):
            self.update_buffer("seen", x)

    with pytest.raises(ShapeError, match=r"buffer 'seen' is int64\[\], not float64\[2,3\]"):
        outcome(Wrong(), np.zeros((2, 3), np.float32))


def test_replacing_a_parameter_by_an_array_says_how_to_set_it():
    with pytest.raises(SettingError, match=r"set weight\.data"):
        Linear(3, 4).weight = np.zeros((4, 3))


def test_reading_before_initialising_says_what_to_call():
    with pytest.raises(SettingError, match=r"initialise\(seed\)"):
        _ = Linear(3, 4).weight.data


def test_setting_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"shape \(4, 3\) cannot become \(3, 4\)"):
        Linear(3, 4).weight.data = np.zeros((3, 4))


def test_a_list_in_place_of_modules_is_explained():
    with pytest.raises(SettingError, match="not a list"):
        Sequential([Linear(3, 4)])  # type: ignore[arg-type]  # the mistake


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Linear has no attribute 'wieght'"):
        _ = Linear(3, 4).wieght


def test_loading_takes_all_or_nothing():
    net = Net().initialise(0)
    before, state = net.state_dict(), net.state_dict()
    state["stem.weight"] = state["stem.weight"] + 1
    state["stem.bais"] = state.pop("stem.bias")
    state["blocks.0.0.weight"] = np.zeros((4, 5))
    with pytest.raises(CheckpointError) as error:
        net.load_state_dict(state)
    assert "'blocks.0.0.weight' has shape (4, 5), the model's is (4, 4)" in str(error.value)
    assert "'stem.bias' is missing (did you mean 'stem.bais'?)" in str(error.value)
    assert "'stem.bais' is not in the model (did you mean 'stem.bias'?)" in str(error.value)
    assert all(np.array_equal(before[n], a) for n, a in net.state_dict().items())


def test_loading_loosely_reports_both_sides():
    net = Net().initialise(0)
    missing, unexpected = net.load_state_dict({"scale": np.full(4, 2), "x": 1}, strict=False)
    assert unexpected == ["x"]
    assert len(missing) == 7
    assert net.scale.data.dtype == np.float32
    assert net.scale.data[0] == 2


def test_loading_an_own_state_changes_nothing():
    net, other = Net().initialise(0), Net()
    other.load_state_dict(net.state_dict())
    assert all(np.array_equal(a, other.state_dict()[n]) for n, a in net.state_dict().items())


def test_a_buffer_that_is_not_persistent_is_not_saved():
    net = Net()
    net.register_buffer("mask", Buffer(np.ones(3, np.float32), persistent=False))
    assert "mask" not in net.state_dict()
    assert isinstance(dict(net.named_buffers())["mask"], Buffer)


def test_random_streams_are_numbered_in_the_order_of_calls():
    with Builder(Tensor) as builder:
        seed = builder.input(TensorType((), int32), "seed")
        with tracing({}, True, seed, seed) as trace:
            assert [trace.next_stream() for _ in range(3)] == [1, 2, 3]
            assert trace.random == (seed, seed)
        with tracing({}) as trace, pytest.raises(GraphError, match="no seed and step"):
            _ = trace.random
