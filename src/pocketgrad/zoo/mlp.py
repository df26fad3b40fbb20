"""The feed-forward networks of Das et al. 2022, whose first number is the input's size.

The paper feeds Model1 to Model4 random inputs to time them; ``mlp-784-256-128-16`` is Model4 on
28×28 images with a head of classes behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pocketgrad.ir.core import TensorType
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.zoo.registry import register

PAPER = "Das et al. 2022, smartphone-GPU training, section III-B and figure 4"


def mlp(sizes: Sequence[int]) -> Sequential:
    """Linear layers from each size to the next with ReLU between them; images are flattened."""
    layers: list[Module] = [Flatten()]
    for n, width in pairwise(sizes):
        layers += [Linear(n, width), ReLU()]
    return Sequential(*layers[:-1])


@register("model1", paper=PAPER, input=TensorType((16,)), classes=16, params=272, domain="study")
def model1(classes: int = 16) -> Sequential:
    """16 → 16."""
    return mlp((16, classes))


@register("model2", paper=PAPER, input=TensorType((16,)), classes=16, params=816, domain="study")
def model2(classes: int = 16) -> Sequential:
    """16 → 16 → 16 → 16."""
    return mlp((16, 16, 16, classes))


@register(
    "model3", paper=PAPER, input=TensorType((256,)), classes=256, params=65_792, domain="study"
)
def model3(classes: int = 256) -> Sequential:
    """256 → 256."""
    return mlp((256, classes))


@register(
    "model4", paper=PAPER, input=TensorType((784,)), classes=16, params=235_920, domain="study"
)
def model4(classes: int = 16) -> Sequential:
    """784 → 256 → 128 → 16."""
    return mlp((784, 256, 128, classes))


@register("mlp-784-256-128-16", paper=PAPER, input=TensorType((1, 28, 28)), params=236_090)
def classifier(classes: int = 10) -> Sequential:
    """784 → 256 → 128 → 16 → classes."""
    return mlp((784, 256, 128, 16, classes))
