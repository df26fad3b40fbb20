"""The table of models is complete and true: names, options, parameters."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from math import prod

import pytest

import pocketgrad.zoo
from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.zoo import MODELS, card, cards
from pocketgrad.zoo.registry import DOMAINS, _cards, register


def test_the_list_is_complete_and_in_order():
    for module in pkgutil.iter_modules(pocketgrad.zoo.__path__):
        import_module(f"pocketgrad.zoo.{module.name}")
    named = [name for name in MODELS if MODELS[name] != "pocketgrad.zoo.grid"]
    assert named == sorted(named)
    assert list(MODELS)[: len(named)] == named
    assert set(_cards) == set(MODELS)
    for name, found in _cards.items():
        assert found.name == name
        assert found.build.__module__ == MODELS[name]
        assert found.domain in DOMAINS


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_parameters_its_card_says(name):
    found = card(name)
    net = found.build()
    assert net.parameter_count() == found.params
    if found.classes:
        assert found.build(classes=found.classes).parameter_count() == found.params
    # Counted a second time, from the shapes: what shares a name would be counted once only.
    assert sum(prod(p.shape) for p in net.parameters()) == found.params


@pytest.mark.golden
@pytest.mark.parametrize("name", [n for n in MODELS if MODELS[n] != "pocketgrad.zoo.grid"])
def test_names_and_shapes_of_parameters_are_the_stored_ones(name, golden):
    net = card(name).build()
    lines = [f"{n}: {t.type}" for n, t in net.entries()]
    golden(f"zoo/{name}.txt", "\n".join([*lines, f"{net.parameter_count():,} parameters"]) + "\n")


def test_an_unknown_model_is_answered_with_near_names():
    with pytest.raises(UnknownNameError, match="did you mean lenet5"):
        card("lenet")


def test_all_cards_are_listed():
    assert [c.name for c in cards()] == list(MODELS)


def test_an_unknown_option_is_answered_with_those_there_are():
    with pytest.raises(SettingError, match="no option 'depth'; it has classes, image, width"):
        card("resnet50").make(depth=3)
    assert card("resnet50").options == {"classes": 1000, "image": 224, "width": 1.0}


def test_a_sample_has_the_size_asked_for():
    assert [t.shape for t in card("resnet50").sample(64)] == [(3, 64, 64)]
    assert card("bert-base").sample() == card("bert-base").inputs
    assert card("lenet5").input == card("lenet5").inputs[0]


def test_an_image_size_that_a_model_cannot_take_is_refused():
    with pytest.raises(SettingError, match="'lenet5' takes 1×28×28 only"):
        card("lenet5").sample(32)
    with pytest.raises(SettingError, match="image=16 is too small"):
        card("resnet50").sample(16)


def test_a_name_is_given_once():
    card("lenet5")
    again = register("lenet5", paper="", input=card("lenet5").input, params=0)
    with pytest.raises(SettingError, match="two models are named 'lenet5'"):
        again(card("lenet5").build)
