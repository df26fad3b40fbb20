"""ResNet-50, 101 and 152 (He et al. 2015, https://arxiv.org/abs/1512.03385), stride in the 3×3.

Names are torchvision's, so its weights load. Images below 112 get the stem of the paper's CIFAR
nets: 3×3 at stride 1, no pooling; at 32×32 the stages then work at 32, 16, 8 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Flatten, Identity, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm2d
from pocketgrad.nn.pool import AdaptiveAvgPool2d, MaxPool2d
from pocketgrad.ops.arithmetic import add
from pocketgrad.zoo.blocks import SMALL, he_initialised, scaled
from pocketgrad.zoo.registry import register

PAPER = "He et al. 2015, Deep residual learning for image recognition"
INPUT = TensorType((3, 224, 224))
EXPANSION = 4


class Bottleneck(Module):
    """1×1 down, 3×3, 1×1 up, around a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = EXPANSION * width
        self.conv1 = Conv2d(channels, width, 1, bias=False)
        self.bn1 = BatchNorm2d(width)
        self.conv2 = Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = BatchNorm2d(width)
        self.conv3 = Conv2d(width, out, 1, bias=False)
        self.bn3 = BatchNorm2d(out)
        self.relu = ReLU()
        self.downsample = None
        if stride != 1 or channels != out:
            projection = Conv2d(channels, out, 1, stride, bias=False)
            self.downsample = Sequential(projection, BatchNorm2d(out))

    def forward(self, x: Value) -> Value:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Value = self.relu(add(y, shortcut))
        return out


class ResNet(Module):
    """A stem, four stages of bottlenecks that halve the image and double the width, and a head."""

    def __init__(self, depths: Sequence[int], classes: int, image: int, width: float) -> None:
        super().__init__()
        base, small = scaled(64, width), image < SMALL
        window, stride = (3, 1) if small else (7, 2)
        self.conv1 = Conv2d(3, base, window, stride, window // 2, bias=False)
        self.bn1 = BatchNorm2d(base)
        self.relu = ReLU()
        self.maxpool = Identity() if small else MaxPool2d(3, 2, 1)
        channels = base
        for stage, depth in enumerate(depths):
            blocks = []
            for i in range(depth):
                block_stride = 2 if i == 0 and stage else 1
                blocks.append(Bottleneck(channels, base << stage, block_stride))
                channels = EXPANSION * (base << stage)
            self.add_module(f"layer{stage + 1}", Sequential(*blocks))
        self.avgpool = AdaptiveAvgPool2d(1)
        self.flatten = Flatten()
        self.fc = Linear(channels, classes)
        he_initialised(self)

    def forward(self, x: Value) -> Value:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        scores: Value = self.fc(self.flatten(self.avgpool(x)))
        return scores


@register("resnet50", paper=PAPER, input=INPUT, classes=1000, params=25_557_032)
def resnet50(classes: int = 1000, image: int = 224, width: float = 1.0) -> ResNet:
    """3, 4, 6 and 3 blocks."""
    return ResNet((3, 4, 6, 3), classes, image, width)


@register("resnet101", paper=PAPER, input=INPUT, classes=1000, params=44_549_160)
def resnet101(classes: int = 1000, image: int = 224, width: float = 1.0) -> ResNet:
    """3, 4, 23 and 3 blocks."""
    return ResNet((3, 4, 23, 3), classes, image, width)


@register("resnet152", paper=PAPER, input=INPUT, classes=1000, params=60_192_808)
def resnet152(classes: int = 1000, image: int = 224, width: float = 1.0) -> ResNet:
    """3, 8, 36 and 3 blocks."""
    return ResNet((3, 8, 36, 3), classes, image, width)
