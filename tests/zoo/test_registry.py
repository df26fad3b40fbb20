"""The table of models is complete and true: names, counts, shapes, and a step of each."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import numpy as np
import pytest
from tests.helpers.describe import outcome

import pocketgrad.zoo
from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.zoo import MODELS, card, cards
from pocketgrad.zoo.registry import _cards, register


def test_the_list_is_sorted_and_complete():
    for module in pkgutil.iter_modules(pocketgrad.zoo.__path__):
        import_module(f"pocketgrad.zoo.{module.name}")
    assert list(MODELS) == sorted(MODELS)
    assert set(_cards) == set(MODELS)
    for name, found in _cards.items():
        assert found.name == name
        assert found.build.__module__ == MODELS[name]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_parameters_its_card_says(name):
    found = card(name)
    assert found.build().parameter_count() == found.params
    assert found.build(classes=found.classes).parameter_count() == found.params


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_of_a_model_has_a_gradient(name):
    found = card(name)
    net = found.build(classes=7).initialise(0)
    x = np.random.default_rng(0).standard_normal((3, *found.input.shape), np.float32)
    got = outcome(net, x)
    assert got.outputs[0].shape == (3, 7)
    for parameter, _ in net.named_parameters():
        assert got.gradients[parameter].any(), parameter


@pytest.mark.golden
@pytest.mark.parametrize("name", MODELS)
def test_names_and_shapes_of_parameters_are_the_stored_ones(name, golden):
    net = card(name).build()
    lines = [f"{n}: {t.type}" for n, t in net.entries()]
    golden(f"zoo/{name}.txt", "\n".join([*lines, f"{net.parameter_count():,} parameters"]) + "\n")


def test_an_unknown_model_is_answered_with_near_names():
    with pytest.raises(UnknownNameError, match="did you mean lenet5"):
        card("lenet")


def test_all_cards_are_listed():
    assert [c.name for c in cards()] == list(MODELS)


def test_a_name_is_given_once():
    card("lenet5")
    again = register("lenet5", paper="", input=card("lenet5").input, params=0)
    with pytest.raises(SettingError, match="two models are named 'lenet5'"):
        again(card("lenet5").build)
