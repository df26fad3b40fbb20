"""DenseNet for CIFAR (Huang et al. 2016, https://arxiv.org/abs/1608.06993): 40-12, 100-12, BC.

Names are torchvision's. The plain nets have one 3×3 convolution per layer and keep all channels
between blocks; BC puts a 1×1 bottleneck before it and keeps half of them.
"""

from __future__ import annotations

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn import init
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm2d
from pocketgrad.nn.pool import AdaptiveAvgPool2d, AvgPool2d
from pocketgrad.ops.move import concat
from pocketgrad.zoo.blocks import he_initialised, scaled
from pocketgrad.zoo.registry import register

PAPER = "Huang et al. 2016, Densely connected convolutional networks"
INPUT = TensorType((3, 32, 32))
BLOCKS = 3
BOTTLENECK = 4  # the 1×1 convolution of BC gives this many times the growth


def dense_layer(channels: int, growth: int, bottleneck: bool, drop: float) -> Sequential:
    """Norm, ReLU, convolution: once, or twice with a bottleneck; gives ``growth`` new channels."""
    parts: dict[str, Module] = {"norm1": BatchNorm2d(channels), "relu1": ReLU()}
    if bottleneck:
        inner = BOTTLENECK * growth
        parts["conv1"] = Conv2d(channels, inner, 1, bias=False)
        parts["norm2"], parts["relu2"] = BatchNorm2d(inner), ReLU()
        parts["conv2"] = Conv2d(inner, growth, 3, padding=1, bias=False)
    else:
        parts["conv1"] = Conv2d(channels, growth, 3, padding=1, bias=False)
    if drop:
        parts["drop"] = Dropout(drop)
    return Sequential(parts)


class DenseBlock(Module):
    """Layers that each see all channels made before them."""

    def __init__(
        self, depth: int, channels: int, growth: int, bottleneck: bool, drop: float
    ) -> None:
        super().__init__()
        for i in range(depth):
            layer = dense_layer(channels + i * growth, growth, bottleneck, drop)
            self.add_module(f"denselayer{i + 1}", layer)
        self.out_channels = channels + depth * growth

    def forward(self, x: Value) -> Value:
        for layer in self.children():
            x = concat([x, layer(x)], axis=1)
        return x


class DenseNet(Module):
    """A 3×3 stem, three dense blocks with 1×1 and pooling between them, and a linear head."""

    def __init__(self, depth: int, growth: int, classes: int, bc: bool, drop: float) -> None:
        super().__init__()
        per_block = (depth - BLOCKS - 1) // BLOCKS // (2 if bc else 1)
        channels = 2 * growth if bc else 16
        parts: dict[str, Module] = {"conv0": Conv2d(3, channels, 3, padding=1, bias=False)}
        for i in range(1, BLOCKS + 1):
            block = DenseBlock(per_block, channels, growth, bc, drop)
            parts[f"denseblock{i}"], channels = block, block.out_channels
            if i < BLOCKS:
                kept = channels // 2 if bc else channels
                between: dict[str, Module] = {"norm": BatchNorm2d(channels), "relu": ReLU()}
                between["conv"] = Conv2d(channels, kept, 1, bias=False)
                between["pool"] = AvgPool2d(2)
                parts[f"transition{i}"], channels = Sequential(between), kept
        parts[f"norm{BLOCKS + 1}"] = BatchNorm2d(channels)
        self.features = Sequential(parts)
        self.relu = ReLU()
        self.avgpool = AdaptiveAvgPool2d(1)
        self.flatten = Flatten()
        self.classifier = Linear(channels, classes)
        he_initialised(self)
        init.zeros_(self.classifier.bias)

    def forward(self, x: Value) -> Value:
        x = self.avgpool(self.relu(self.features(x)))
        scores: Value = self.classifier(self.flatten(x))
        return scores


@register("densenet40", paper=PAPER, input=INPUT, params=1_019_722)
def densenet40(classes: int = 10, width: float = 1.0, drop: float = 0.0) -> DenseNet:
    """L = 40, k = 12: twelve layers per block. The paper drops 0.2 without augmentation."""
    return DenseNet(40, scaled(12, width), classes, bc=False, drop=drop)


@register("densenet100", paper=PAPER, input=INPUT, params=6_979_642)
def densenet100(classes: int = 10, width: float = 1.0, drop: float = 0.0) -> DenseNet:
    """L = 100, k = 12: thirty-two layers per block."""
    return DenseNet(100, scaled(12, width), classes, bc=False, drop=drop)


@register("densenet100-bc", paper=PAPER, input=INPUT, params=769_162)
def densenet100_bc(classes: int = 10, width: float = 1.0, drop: float = 0.0) -> DenseNet:
    """L = 100, k = 12 with bottleneck and compression: sixteen layers per block."""
    return DenseNet(100, scaled(12, width), classes, bc=True, drop=drop)
