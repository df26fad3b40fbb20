"""LeNet-5 (LeCun et al. 1998) with ReLU and max pooling, as it is benchmarked today.

28×28 images are padded to the 32×32 of the paper by the first convolution.
"""

from __future__ import annotations

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.pool import MaxPool2d
from pocketgrad.zoo.registry import register

PAPER = "LeCun et al. 1998, Gradient-based learning applied to document recognition"


class LeNet5(Module):
    """Two convolutions with pooling, three linear layers: 1×28×28 → 6×14×14 → 16×5×5 → classes."""

    def __init__(self, classes: int = 10, channels: int = 1) -> None:
        super().__init__()
        self.features = Sequential(
            Conv2d(channels, 6, 5, padding=2), ReLU(), MaxPool2d(2),
            Conv2d(6, 16, 5), ReLU(), MaxPool2d(2),
        )  # fmt: skip
        self.classifier = Sequential(
            Flatten(), Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, classes)
        )

    def forward(self, x: Value) -> Value:
        scores: Value = self.classifier(self.features(x))
        return scores


@register("lenet5", paper=PAPER, input=TensorType((1, 28, 28)), params=61_706)
def lenet5(classes: int = 10, channels: int = 1) -> LeNet5:
    """The usual one."""
    return LeNet5(classes, channels)
