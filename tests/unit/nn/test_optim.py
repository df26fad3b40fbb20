"""Optimisers: groups, clipping by value, and settings that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate

from pocketgrad.base.dtypes import int32
from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType
from pocketgrad.nn import optim, schedule
from pocketgrad.ops.pointwise import Pointwise
from pocketgrad.ops.source import Constant
from pocketgrad.ops.tensor import Tensor


def test_each_parameter_belongs_to_the_first_group_that_matches():
    sgd = optim.SGD(
        0.1,
        momentum=0.9,
        weight_decay=0.01,
        groups=(
            optim.Group("*.bias", overrides={"weight_decay": 0.0}),
            optim.Group("head.*", lr_scale=10.0),
        ),
    )
    bias, head, rest = sgd.shares(["a.weight", "a.bias", "head.weight", "head.bias"])
    assert (bias.names, bias.lr_scale) == (("a.bias", "head.bias"), 1.0)
    assert bias.optimizer == optim.SGD(0.1, 0.9)
    assert (head.names, head.lr_scale) == (("head.weight",), 10.0)
    assert (rest.names, rest.optimizer) == (("a.weight",), optim.SGD(0.1, 0.9, weight_decay=0.01))


def test_without_groups_there_is_one_share():
    (share,) = optim.Adam().shares(["a", "b"])
    assert share == (optim.Adam(), 1.0, ("a", "b"))
    assert optim.Adam().shares([]) == []


def test_a_group_that_matches_nothing_is_an_error():
    with pytest.raises(UnknownNameError, match=r"no parameter is named 'haed\.\*'"):
        optim.SGD(groups=(optim.Group("haed.*"),)).shares(["head.weight"])


def test_a_group_whose_parameters_are_all_frozen_is_none():
    sgd = optim.SGD(groups=(optim.Group("head.*"),))
    (share,) = sgd.shares(["stem.weight"], frozen=["head.weight"])
    assert share.names == ("stem.weight",)


def test_an_override_that_no_optimizer_has_is_an_error():
    with pytest.raises(UnknownNameError, match="did you mean weight_decay"):
        optim.SGD(groups=(optim.Group("*", overrides={"weight_decya": 0}),))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.SGD(-0.1), "SGD: lr must be ≥ 0, got -0.1"),
        (lambda: optim.SGD(float("nan")), "lr must be ≥ 0, got nan"),
        (lambda: optim.SGD(0.1, nesterov=True), "nesterov needs a momentum"),
        (lambda: optim.SGD(0.1, 0.9, 0.5, nesterov=True), "no dampening"),
        (lambda: optim.Adam(betas=(0.9, 1.0)), r"betas must be in \[0, 1\), got 1.0"),
        (lambda: optim.AdamW(eps=-1e-8), "AdamW: eps must be ≥ 0"),
        (lambda: optim.RMSprop(clip_norm=-1.0), "clip_norm must be ≥ 0"),
        (lambda: schedule.StepLR(0), "StepLR: step_size must be above 0"),
        (lambda: schedule.Warmup(0), "Warmup: steps must be above 0"),
        (lambda: schedule.OneCycleLR(1), "OneCycleLR needs total_steps"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(SettingError, match=message):
        make()


def test_clipping_by_value_bounds_every_element():
    with Builder(Tensor) as builder:
        g = builder.input(TensorType((4,)), "g")
        (clipped,) = optim.SGD(clip_value=1.5).clip([g])
    array = np.array([-9, -1.5, 0.25, 2], np.float32)
    known = evaluate(builder.graph([clipped]), {"g": array})
    assert known[clipped].tolist() == [-1.5, -1.5, 0.25, 1.5]


def test_no_gradients_are_clipped_to_none():
    assert optim.SGD(clip_norm=1.0, clip_value=1.0).clip([]) == []


@pytest.mark.parametrize("name", optim.ALL)
def test_an_update_is_pointwise_so_that_it_is_one_launch(name):
    optimizer = optim.ALL[name](0.1, groups=(), clip_value=1.0)
    flat, scalar = TensorType((9,)), TensorType(())
    with Builder(Tensor) as builder:
        p, g, lr = (builder.input(t, n) for t, n in ((flat, "p"), (flat, "g"), (scalar, "lr")))
        step = builder.input(TensorType((), int32), "step")
        state = {n: builder.input(flat, n) for n in optimizer.state_names}
        optimizer.update(p, optimizer.clip([g])[0], state, lr, step)
    assert all(isinstance(n.op, (Pointwise, Constant)) for n in builder.nodes)


def test_a_schedule_stays_at_its_end():
    assert schedule.CosineLR(10, end=0.25).at(1000) == 0.25
    assert schedule.LinearLR(10, 1.0, 0.5).at(1000) == 0.5
    assert schedule.Warmup(10).at(1000) == 1.0


def test_a_warmup_rises_along_a_line():
    factors = [schedule.Warmup(4).at(t) for t in range(6)]
    assert factors == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
