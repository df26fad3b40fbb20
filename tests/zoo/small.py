"""Every model at a size that NumPy can work out: options, and the inputs of a batch of three."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.module import Module
from pocketgrad.nn.recurrent import Recurrent
from pocketgrad.zoo import MODELS, card

CLASSES, BATCH, STEPS, TOKENS = 7, 3, 6, 11

OPTIONS: dict[str, dict[str, Any]] = {
    "alexnet": {"image": 32, "width": 1 / 32},
    "bert-base": {"width": 1 / 32, "vocabulary": TOKENS},
    "bert-tiny": {"width": 1 / 8, "vocabulary": TOKENS},
    "char-cnn": {"width": 1 / 32, "length": 200},
    "char-cnn-lstm": {"width": 1 / 16},
    "char-lstm": {"width": 1 / 32},
    "dcgan-discriminator": {"width": 1 / 16},
    "dcgan-generator": {"width": 1 / 16},
    "densenet100": {"width": 1 / 6},
    "densenet100-bc": {"width": 1 / 6},
    "densenet40": {"width": 1 / 6},
    "dqn": {"width": 1 / 8},
    "googlenet": {"image": 32, "width": 1 / 16, "aux": True},
    "mentee": {"width": 1 / 16},
    "mobilenet-v2": {"image": 32, "width": 1 / 4},
    "reduced-mobilenet": {"width": 1 / 4},
    "reduced-resnet": {"width": 1 / 16},
    "resnet101": {"image": 32, "width": 1 / 16},
    "resnet152": {"image": 32, "width": 1 / 16},
    "resnet50": {"image": 32, "width": 1 / 16},
    "seq2seq": {"width": 1 / 32, "source": TOKENS},
    "squeezenet-1.0": {"image": 32, "width": 1 / 8},
    "squeezenet-1.1": {"image": 32, "width": 1 / 8},
    "vgg16": {"image": 32, "width": 1 / 16},
    "vgg19": {"image": 32, "width": 1 / 16},
    "xception": {"image": 32, "width": 1 / 16},
}
# The grids differ in size alone, and wide ones have nothing to shrink.
NAMES = [n for n in MODELS if "-d" not in n or n.endswith("-d2-w64") or n.startswith("dcgan")]
NAMES = [n for n in NAMES if n != "conv-d2-w64"]


def small(name: str) -> Module:
    """The model with few channels, small images, and few classes where it has classes."""
    found = card(name)
    options = dict(OPTIONS.get(name, {}))
    return found.make(**options, **({"classes": CLASSES} if found.classes else {}))


def without_dropout(net: Module) -> Module:
    """The same model with nothing left to chance in training."""
    for part in net.modules():
        if isinstance(part, Dropout):
            part.p = 0.0
        if isinstance(part, Recurrent):
            part.dropout = 0.0
    return net


def batch(name: str) -> list[Array]:
    """Inputs for it: normal numbers, or tokens of which some are padding."""
    found, options = card(name), OPTIONS.get(name, {})
    rng = np.random.default_rng(0)
    arrays: list[Array] = []
    for t in found.sample(options.get("image")):
        if t.dtype.is_float:
            arrays.append(rng.standard_normal((BATCH, *t.shape), np.float32))
        else:
            limit = CLASSES if name.startswith("char") else TOKENS
            steps = options.get("length", STEPS)
            arrays.append(rng.integers(0, limit, (BATCH, steps), np.int32))
    if name.startswith("bert"):
        arrays[1] %= 2
        arrays[2] = (np.arange(STEPS) < 4).astype(np.int32) * np.ones((BATCH, 1), np.int32)
    if name == "seq2seq":
        arrays[1] %= CLASSES
    return arrays
