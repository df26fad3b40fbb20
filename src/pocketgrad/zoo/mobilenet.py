"""MobileNetV2 (Sandler et al. 2018, https://arxiv.org/abs/1801.04381).

Names are torchvision's, so its weights load. Images below 112 keep their size in the first
convolution and in the first stage that would halve it; at 32×32 the last stage then works at 4×4.
"""

from __future__ import annotations

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm2d
from pocketgrad.nn.pool import AdaptiveAvgPool2d
from pocketgrad.ops.arithmetic import add
from pocketgrad.zoo.blocks import SMALL, conv_norm, he_initialised, scaled
from pocketgrad.zoo.registry import register

PAPER = "Sandler et al. 2018, MobileNetV2: inverted residuals and linear bottlenecks"

# Expansion, channels, blocks, stride of the first (table 2 of the paper).
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class InvertedResidual(Module):
    """1×1 up, depthwise 3×3, 1×1 down without activation; a shortcut where shapes agree."""

    def __init__(self, channels: int, out: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = channels * expansion
        layers: list[Module] = []
        if expansion != 1:
            layers.append(conv_norm((channels, inner), 1, six=True))
        layers += [
            conv_norm((inner, inner), 3, stride, groups=inner, six=True),
            Conv2d(inner, out, 1, bias=False),
            BatchNorm2d(out),
        ]
        self.conv = Sequential(*layers)
        self.shortcut = stride == 1 and channels == out

    def forward(self, x: Value) -> Value:
        y: Value = self.conv(x)
        return add(x, y) if self.shortcut else y


class MobileNetV2(Module):
    """A stem, seventeen inverted residuals, a wide 1×1 convolution and a linear head."""

    def __init__(self, classes: int, image: int, width: float) -> None:
        super().__init__()
        kept = 1 if image < SMALL else 2
        channels, last = scaled(32, width, 8), scaled(1280, max(1.0, width), 8)
        layers: list[Module] = [conv_norm((3, channels), 3, kept, six=True)]
        for expansion, full, depth, stride in STAGES:
            out = scaled(full, width, 8)
            for i in range(depth):
                this = (kept if full == 24 else stride) if i == 0 else 1
                layers.append(InvertedResidual(channels, out, this, expansion))
                channels = out
        layers.append(conv_norm((channels, last), 1, six=True))
        self.features = Sequential(*layers)
        self.avgpool = AdaptiveAvgPool2d(1)
        self.flatten = Flatten()
        self.classifier = Sequential(Dropout(0.2), Linear(last, classes))
        he_initialised(self, linear_std=0.01)

    def forward(self, x: Value) -> Value:
        scores: Value = self.classifier(self.flatten(self.avgpool(self.features(x))))
        return scores


@register(
    "mobilenet-v2", paper=PAPER, input=TensorType((3, 224, 224)), classes=1000, params=3_504_872
)
def mobilenet_v2(classes: int = 1000, image: int = 224, width: float = 1.0) -> MobileNetV2:
    """The usual one."""
    return MobileNetV2(classes, image, width)
