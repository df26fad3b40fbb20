"""Models by name. A model's module is imported when the model is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.zoo.registry import ModelCard

MODELS: Mapping[str, str] = {
    "lenet5": "pocketgrad.zoo.lenet",
    "mlp-784-256-128-16": "pocketgrad.zoo.mlp",
    "model1": "pocketgrad.zoo.mlp",
    "model2": "pocketgrad.zoo.mlp",
    "model3": "pocketgrad.zoo.mlp",
    "model4": "pocketgrad.zoo.mlp",
}

__all__ = ["MODELS", "ModelCard", "card", "cards"]


def card(name: str) -> ModelCard:
    """What is known of a model; ``card(name).build()`` makes it."""
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    import_module(MODELS[name])
    from pocketgrad.zoo.registry import entered

    return entered(name)


def cards() -> list[ModelCard]:
    """All models."""
    return [card(name) for name in MODELS]
