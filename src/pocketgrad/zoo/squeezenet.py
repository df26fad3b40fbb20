"""SqueezeNet 1.0 and 1.1 (Iandola et al. 2016, https://arxiv.org/abs/1602.07360).

Names are torchvision's, so its weights load. Images below 112 get a first convolution that keeps
their size; at 32×32 the last fire module then works at 3×3 (1.0) or 4×4 (1.1).
"""

from __future__ import annotations

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn import init
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Flatten
from pocketgrad.nn.module import Module
from pocketgrad.nn.pool import AdaptiveAvgPool2d, MaxPool2d
from pocketgrad.ops.move import concat
from pocketgrad.zoo.blocks import SMALL, scaled
from pocketgrad.zoo.registry import register

PAPER = "Iandola et al. 2016, SqueezeNet: AlexNet-level accuracy with 50x fewer parameters"
INPUT = TensorType((3, 224, 224))

# Channels of the squeeze and of each half of the expansion.
FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))


class Fire(Module):
    """1×1 to few channels, then 1×1 and 3×3 side by side to many."""

    def __init__(self, channels: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = Conv2d(channels, squeeze, 1)
        self.squeeze_activation = ReLU()
        self.expand1x1 = Conv2d(squeeze, expand, 1)
        self.expand1x1_activation = ReLU()
        self.expand3x3 = Conv2d(squeeze, expand, 3, padding=1)
        self.expand3x3_activation = ReLU()

    def forward(self, x: Value) -> Value:
        x = self.squeeze_activation(self.squeeze(x))
        narrow = self.expand1x1_activation(self.expand1x1(x))
        wide = self.expand3x3_activation(self.expand3x3(x))
        return concat([narrow, wide], axis=1)


class SqueezeNet(Module):
    """A stem, eight fire modules with pooling before those in ``pooled``, and 1×1 to classes."""

    def __init__(self, stem: Conv2d, pooled: tuple[int, ...], classes: int, width: float) -> None:
        super().__init__()
        layers: list[Module] = [stem, ReLU()]
        channels = stem.out_channels
        for i, (squeeze, expand) in enumerate(FIRES):
            if i in pooled:
                layers.append(MaxPool2d(3, 2, ceil_mode=True))
            layers.append(Fire(channels, scaled(squeeze, width), scaled(expand, width)))
            channels = 2 * scaled(expand, width)
        self.features = Sequential(*layers)
        last = Conv2d(channels, classes, 1)
        self.classifier = Sequential(Dropout(), last, ReLU(), AdaptiveAvgPool2d(1))
        self.flatten = Flatten()
        for part in self.modules():
            if isinstance(part, Conv2d):
                init.kaiming_uniform_(part.weight, nonlinearity="relu")
                init.zeros_(part.bias)
        init.normal_(last.weight, 0.0, 0.01)

    def forward(self, x: Value) -> Value:
        scores: Value = self.flatten(self.classifier(self.features(x)))
        return scores


@register("squeezenet-1.0", paper=PAPER, input=INPUT, classes=1000, params=1_248_424)
def squeezenet_1_0(classes: int = 1000, image: int = 224, width: float = 1.0) -> SqueezeNet:
    """The paper's."""
    base = scaled(96, width)
    stem = Conv2d(3, base, 7, 1, 3) if image < SMALL else Conv2d(3, base, 7, 2)
    return SqueezeNet(stem, (0, 3, 7), classes, width)


@register("squeezenet-1.1", paper=PAPER, input=INPUT, classes=1000, params=1_235_496)
def squeezenet_1_1(classes: int = 1000, image: int = 224, width: float = 1.0) -> SqueezeNet:
    """The authors' later one, with 2.4 times less arithmetic."""
    base = scaled(64, width)
    stem = Conv2d(3, base, 3, 1, 1) if image < SMALL else Conv2d(3, base, 3, 2)
    return SqueezeNet(stem, (0, 2, 4), classes, width)
