"""Initial values have the bounds and variances that their formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pocketgrad.base.errors import SettingError, ShapeError
from pocketgrad.nn import init
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Embedding, Linear

SHAPE = (64, 32, 3, 3)


def drawn(draw, shape=SHAPE, **settings):
    return draw(init.stream(0, "w"), shape, **settings)


def test_kaiming_keeps_the_variance_of_what_follows():
    for settings, fan in (({}, 288), ({"mode": "fan_out"}, 576)):
        want = math.sqrt(2 / fan)
        assert drawn(init.kaiming_normal, **settings).std() == pytest.approx(want, rel=0.03)
        uniform = drawn(init.kaiming_uniform, **settings)
        assert uniform.std() == pytest.approx(want, rel=0.03)
        assert np.abs(uniform).max() == pytest.approx(want * math.sqrt(3), rel=1e-3)


def test_xavier_keeps_both_variances():
    want = math.sqrt(2 / (288 + 576))
    assert drawn(init.xavier_normal).std() == pytest.approx(want, rel=0.03)
    assert drawn(init.xavier_uniform, gain=2.0).std() == pytest.approx(2 * want, rel=0.03)


def test_default_weights_and_biases_are_bounded_by_the_fan_in():
    layer = Conv2d(32, 64, 3).initialise(1)
    bound = 1 / math.sqrt(288)
    assert np.abs(layer.weight.data).max() == pytest.approx(bound, rel=1e-3)
    assert 0.9 * bound < np.abs(layer.bias.data).max() < bound


def test_a_truncated_normal_stays_within_its_bound():
    array = drawn(init.trunc_normal, std=1.0, bound=0.5)
    assert np.abs(array).max() <= 0.5
    assert array.std() > 0.25


def test_the_padding_row_of_a_table_starts_at_zero():
    table = Embedding(5, 3, padding_idx=-1).initialise(0).weight.data
    assert not table[4].any()
    assert table[:4].all()
    with pytest.raises(SettingError, match="padding_idx 5 is no row of a table of 5"):
        Embedding(5, 3, padding_idx=5)


def test_a_chosen_initialiser_draws_when_the_seed_comes():
    layer = Linear(4, 3).initialise(0)
    init.constant_(layer.weight, 2.5)
    init.zeros_(layer.bias)
    assert not layer.weight.initialised
    layer.initialise(0)
    assert (layer.weight.data == 2.5).all()
    assert not layer.bias.data.any()
    for choose in (
        init.kaiming_normal_,
        init.kaiming_uniform_,
        init.normal_,
        init.ones_,
        init.trunc_normal_,
        init.uniform_,
        init.xavier_normal_,
        init.xavier_uniform_,
    ):
        choose(layer.weight)
        assert layer.initialise(3).weight.data.any()


def test_a_fan_of_a_vector_does_not_exist():
    with pytest.raises(ShapeError, match="at least two axes"):
        init.kaiming_normal_(Linear(4, 3).bias)


def test_an_unknown_nonlinearity_is_named():
    with pytest.raises(SettingError, match="no gain for 'rleu'"):
        init.gain("rleu")


def test_streams_of_different_seeds_and_names_differ():
    first = [init.stream(*key).random() for key in ((0, "a"), (0, "b"), (1, "a"), (-1, "a"))]
    assert len(set(first)) == 4
    assert init.stream(0, "a").random() == first[0]


def test_a_layer_without_inputs_can_be_made():
    assert Linear(0, 3).initialise(0).bias.data.tolist() == [0, 0, 0]
