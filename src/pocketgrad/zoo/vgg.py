"""VGG16 and VGG19 (Simonyan and Zisserman 2014, https://arxiv.org/abs/1409.1556), without norms.

Names are torchvision's, so its weights load. Images below 112 reach the head as 1×1 (at 32×32) and
get one of 512 in place of 4096, as is usual for CIFAR; ``hidden`` sets it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.pool import AdaptiveAvgPool2d, MaxPool2d
from pocketgrad.zoo.blocks import SMALL, he_initialised, scaled
from pocketgrad.zoo.registry import register

PAPER = "Simonyan and Zisserman 2014, Very deep convolutional networks"
INPUT = TensorType((3, 224, 224))
STAGES = (64, 128, 256, 512, 512)


class VGG(Module):
    """Five stages of 3×3 convolutions, each followed by 2×2 pooling, and three linear layers."""

    def __init__(
        self, depths: Sequence[int], classes: int, image: int, width: float, hidden: int | None
    ) -> None:
        super().__init__()
        layers: list[Module] = []
        channels = 3
        for depth, full in zip(depths, STAGES, strict=True):
            for _ in range(depth):
                layers += [Conv2d(channels, scaled(full, width), 3, padding=1), ReLU()]
                channels = scaled(full, width)
            layers.append(MaxPool2d(2))
        small = image < SMALL
        side = image // 32 if small else 7
        hidden = scaled(512 if small else 4096, width) if hidden is None else hidden
        self.features = Sequential(*layers)
        self.avgpool = AdaptiveAvgPool2d(side)
        self.flatten = Flatten()
        self.classifier = Sequential(
            Linear(channels * side * side, hidden), ReLU(), Dropout(),
            Linear(hidden, hidden), ReLU(), Dropout(),
            Linear(hidden, classes),
        )  # fmt: skip
        he_initialised(self, linear_std=0.01)

    def forward(self, x: Value) -> Value:
        scores: Value = self.classifier(self.flatten(self.avgpool(self.features(x))))
        return scores


@register("vgg16", paper=PAPER, input=INPUT, classes=1000, params=138_357_544)
def vgg16(
    classes: int = 1000, image: int = 224, width: float = 1.0, hidden: int | None = None
) -> VGG:
    """Configuration D: 2, 2, 3, 3 and 3 convolutions."""
    return VGG((2, 2, 3, 3, 3), classes, image, width, hidden)


@register("vgg19", paper=PAPER, input=INPUT, classes=1000, params=143_667_240)
def vgg19(
    classes: int = 1000, image: int = 224, width: float = 1.0, hidden: int | None = None
) -> VGG:
    """Configuration E: 2, 2, 4, 4 and 4 convolutions."""
    return VGG((2, 2, 4, 4, 4), classes, image, width, hidden)
