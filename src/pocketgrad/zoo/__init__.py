"""Models by name. A model's module is imported when the model is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import product

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.zoo.registry import ModelCard

_GRID = product(("conv", "fc", "separable"), (1, 2, 4, 8), (64, 128, 256, 512))

MODELS: Mapping[str, str] = {
    "alexnet": "pocketgrad.zoo.alexnet",
    "bert-base": "pocketgrad.zoo.bert",
    "bert-tiny": "pocketgrad.zoo.bert",
    "char-cnn": "pocketgrad.zoo.character",
    "char-cnn-lstm": "pocketgrad.zoo.character",
    "char-lstm": "pocketgrad.zoo.character",
    "dcgan-discriminator": "pocketgrad.zoo.dcgan",
    "dcgan-generator": "pocketgrad.zoo.dcgan",
    "densenet100": "pocketgrad.zoo.densenet",
    "densenet100-bc": "pocketgrad.zoo.densenet",
    "densenet40": "pocketgrad.zoo.densenet",
    "dqn": "pocketgrad.zoo.dqn",
    "dqn-vector": "pocketgrad.zoo.dqn",
    "googlenet": "pocketgrad.zoo.googlenet",
    "lenet5": "pocketgrad.zoo.lenet",
    "mentee": "pocketgrad.zoo.reduced",
    "mlp-784-256-128-16": "pocketgrad.zoo.mlp",
    "mobilenet-v2": "pocketgrad.zoo.mobilenet",
    "model1": "pocketgrad.zoo.mlp",
    "model2": "pocketgrad.zoo.mlp",
    "model3": "pocketgrad.zoo.mlp",
    "model4": "pocketgrad.zoo.mlp",
    "reduced-mobilenet": "pocketgrad.zoo.reduced",
    "reduced-resnet": "pocketgrad.zoo.reduced",
    "resnet101": "pocketgrad.zoo.resnet",
    "resnet152": "pocketgrad.zoo.resnet",
    "resnet50": "pocketgrad.zoo.resnet",
    "seq2seq": "pocketgrad.zoo.seq2seq",
    "squeezenet-1.0": "pocketgrad.zoo.squeezenet",
    "squeezenet-1.1": "pocketgrad.zoo.squeezenet",
    "vgg16": "pocketgrad.zoo.vgg",
    "vgg19": "pocketgrad.zoo.vgg",
    "xception": "pocketgrad.zoo.xception",
    **{f"{kind}-d{depth}-w{width}": "pocketgrad.zoo.grid" for kind, depth, width in _GRID},
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
