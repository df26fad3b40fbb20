"""Xception (Chollet 2016, https://arxiv.org/abs/1610.02357).

Names are those of the common PyTorch port, and the count is the paper's. Images below 112 keep
their size in the stem and in the first block; at 32×32 the last convolutions then work at 4×4.
"""

from __future__ import annotations

from itertools import pairwise

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm2d
from pocketgrad.nn.pool import AdaptiveAvgPool2d, MaxPool2d
from pocketgrad.ops.arithmetic import add
from pocketgrad.zoo.blocks import SMALL, he_initialised, scaled
from pocketgrad.zoo.registry import register

PAPER = "Chollet 2016, Xception: deep learning with depthwise separable convolutions"


class SeparableConv2d(Module):
    """Depthwise 3×3, then 1×1 across channels, nothing between them."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv1 = Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.pointwise = Conv2d(channels, out, 1, bias=False)

    def forward(self, x: Value) -> Value:
        y: Value = self.pointwise(self.conv1(x))
        return y


class Block(Module):
    """Separable convolutions through ``sizes`` around a shortcut; pooled where the stride is 2."""

    def __init__(self, sizes: list[int], stride: int = 1, activate_first: bool = True) -> None:
        super().__init__()
        layers: list[Module] = []
        for channels, out in pairwise(sizes):
            layers += [ReLU(), SeparableConv2d(channels, out), BatchNorm2d(out)]
        if not activate_first:
            layers = layers[1:]
        if stride != 1:
            layers.append(MaxPool2d(3, stride, 1))
        self.rep = Sequential(*layers)
        self.skip = None
        if stride != 1 or sizes[0] != sizes[-1]:
            self.skip = Conv2d(sizes[0], sizes[-1], 1, stride, bias=False)
            self.skipbn = BatchNorm2d(sizes[-1])

    def forward(self, x: Value) -> Value:
        shortcut = x if self.skip is None else self.skipbn(self.skip(x))
        return add(self.rep(x), shortcut)


class Xception(Module):
    """Entry flow (stem, blocks 1 to 3), middle flow (4 to 11), exit flow (12 and two more)."""

    def __init__(self, classes: int, image: int, width: float) -> None:
        super().__init__()
        sizes = (32, 64, 128, 256, 728, 1024, 1536, 2048)
        a, b, c, d, e, f, g, h = (scaled(n, width) for n in sizes)
        small = image < SMALL
        self.conv1 = Conv2d(3, a, 3, *((1, 1) if small else (2, 0)), bias=False)
        self.bn1 = BatchNorm2d(a)
        self.relu = ReLU()
        self.conv2 = Conv2d(a, b, 3, padding=1 if small else 0, bias=False)
        self.bn2 = BatchNorm2d(b)
        self.block1 = Block([b, c, c], 1 if small else 2, activate_first=False)
        self.block2 = Block([c, d, d], 2)
        self.block3 = Block([d, e, e], 2)
        for i in range(4, 12):
            self.add_module(f"block{i}", Block([e, e, e, e]))
        self.block12 = Block([e, e, f], 2)
        self.conv3, self.bn3 = SeparableConv2d(f, g), BatchNorm2d(g)
        self.conv4, self.bn4 = SeparableConv2d(g, h), BatchNorm2d(h)
        self.avgpool = AdaptiveAvgPool2d(1)
        self.flatten = Flatten()
        self.fc = Linear(h, classes)
        he_initialised(self)

    def forward(self, x: Value) -> Value:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        for i in range(1, 13):
            x = getattr(self, f"block{i}")(x)
        x = self.relu(self.bn3(self.conv3(x)))
        x = self.relu(self.bn4(self.conv4(x)))
        scores: Value = self.fc(self.flatten(self.avgpool(x)))
        return scores


@register("xception", paper=PAPER, input=TensorType((3, 299, 299)), classes=1000, params=22_855_952)
def xception(classes: int = 1000, image: int = 299, width: float = 1.0) -> Xception:
    """The usual one."""
    return Xception(classes, image, width)
