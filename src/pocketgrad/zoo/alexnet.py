"""AlexNet in one column (Krizhevsky 2014, https://arxiv.org/abs/1404.5997), as torchvision has it.

Names are torchvision's, so its weights load. Images below 112 get a 5×5 first convolution at
stride 1 in place of 11×11 at stride 4; at 32×32 the head then sees 3×3.
"""

from __future__ import annotations

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.pool import AdaptiveAvgPool2d, MaxPool2d
from pocketgrad.zoo.blocks import SMALL, scaled
from pocketgrad.zoo.registry import register

PAPER = "Krizhevsky 2014, One weird trick for parallelizing convolutional neural networks"


class AlexNet(Module):
    """Five convolutions, three poolings, three linear layers."""

    def __init__(self, classes: int, image: int, width: float) -> None:
        super().__init__()
        a, b, c, d = (scaled(n, width) for n in (64, 192, 384, 256))
        hidden, small = scaled(4096, width), image < SMALL
        stem = Conv2d(3, a, 5, 1, 2) if small else Conv2d(3, a, 11, 4, 2)
        self.features = Sequential(
            stem, ReLU(), MaxPool2d(3, 2),
            Conv2d(a, b, 5, padding=2), ReLU(), MaxPool2d(3, 2),
            Conv2d(b, c, 3, padding=1), ReLU(),
            Conv2d(c, d, 3, padding=1), ReLU(),
            Conv2d(d, d, 3, padding=1), ReLU(), MaxPool2d(3, 2),
        )  # fmt: skip
        side = 3 if small else 6
        self.avgpool = AdaptiveAvgPool2d(side)
        self.flatten = Flatten()
        self.classifier = Sequential(
            Dropout(), Linear(d * side * side, hidden), ReLU(),
            Dropout(), Linear(hidden, hidden), ReLU(),
            Linear(hidden, classes),
        )  # fmt: skip

    def forward(self, x: Value) -> Value:
        scores: Value = self.classifier(self.flatten(self.avgpool(self.features(x))))
        return scores


@register("alexnet", paper=PAPER, input=TensorType((3, 224, 224)), classes=1000, params=61_100_840)
def alexnet(classes: int = 1000, image: int = 224, width: float = 1.0) -> AlexNet:
    """The usual one."""
    return AlexNet(classes, image, width)
