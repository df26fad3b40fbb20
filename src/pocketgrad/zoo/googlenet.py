"""GoogLeNet / Inception v1 (Szegedy et al. 2014, https://arxiv.org/abs/1409.4842), batch-normed.

Structure and names are torchvision's, so its weights load: batch norm in place of biases, and 3×3
where the paper has 5×5. Images below 112 meet a 3×3 stem that keeps their size.
"""

from __future__ import annotations

from typing import NamedTuple

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn import init
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Flatten, Identity, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm2d
from pocketgrad.nn.pool import AdaptiveAvgPool2d, MaxPool2d
from pocketgrad.ops.move import concat
from pocketgrad.zoo.blocks import SMALL, scaled
from pocketgrad.zoo.registry import register

PAPER = "Szegedy et al. 2014, Going deeper with convolutions"

# Channels of the branches: 1×1; down, 3×3; down, "5×5"; pooling (table 1 of the paper).
INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


class Scores(NamedTuple):
    """Those of the head, and in training those of the two auxiliary heads, the later one first."""

    logits: Value
    aux_logits2: Value
    aux_logits1: Value


class BasicConv2d(Module):
    """Convolution, batch norm, ReLU."""

    def __init__(self, channels: int, out: int, window: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = Conv2d(channels, out, window, stride, window // 2, bias=False)
        self.bn = BatchNorm2d(out, eps=0.001)
        self.relu = ReLU()

    def forward(self, x: Value) -> Value:
        y: Value = self.relu(self.bn(self.conv(x)))
        return y


class Inception(Module):
    """Four branches side by side."""

    def __init__(self, channels: int, sizes: list[int]) -> None:
        super().__init__()
        one, down3, three, down5, five, pooled = sizes
        self.branch1 = BasicConv2d(channels, one, 1)
        self.branch2 = Sequential(BasicConv2d(channels, down3, 1), BasicConv2d(down3, three, 3))
        self.branch3 = Sequential(BasicConv2d(channels, down5, 1), BasicConv2d(down5, five, 3))
        pool = MaxPool2d(3, 1, 1, ceil_mode=True)
        self.branch4 = Sequential(pool, BasicConv2d(channels, pooled, 1))
        self.out_channels = one + three + five + pooled

    def forward(self, x: Value) -> Value:
        branches = (self.branch1, self.branch2, self.branch3, self.branch4)
        return concat([branch(x) for branch in branches], axis=1)


class Auxiliary(Module):
    """A classifier in the middle of the net, for training only."""

    def __init__(self, channels: int, classes: int, width: float) -> None:
        super().__init__()
        narrow, hidden = scaled(128, width), scaled(1024, width)
        self.pool = AdaptiveAvgPool2d(4)
        self.conv = BasicConv2d(channels, narrow, 1)
        self.flatten = Flatten()
        self.fc1 = Linear(16 * narrow, hidden)
        self.relu = ReLU()
        self.dropout = Dropout(0.7)
        self.fc2 = Linear(hidden, classes)

    def forward(self, x: Value) -> Value:
        x = self.relu(self.fc1(self.flatten(self.conv(self.pool(x)))))
        scores: Value = self.fc2(self.dropout(x))
        return scores


class GoogLeNet(Module):
    """A stem, nine inceptions, a linear head; in training ``Scores`` if it has auxiliary heads."""

    def __init__(self, classes: int, image: int, width: float, aux: bool) -> None:
        super().__init__()
        base, third, small = scaled(64, width), scaled(192, width), image < SMALL
        self.conv1 = BasicConv2d(3, base, *((3, 1) if small else (7, 2)))
        self.maxpool1 = Identity() if small else MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = BasicConv2d(base, base, 1)
        self.conv3 = BasicConv2d(base, third, 3)
        self.maxpool2 = Identity() if small else MaxPool2d(3, 2, ceil_mode=True)
        self.maxpool3 = MaxPool2d(3, 2, ceil_mode=True)
        self.maxpool4 = MaxPool2d(2, 2, ceil_mode=True)
        channels, found = third, {}
        for name, sizes in INCEPTIONS.items():
            block = Inception(channels, [scaled(n, width) for n in sizes])
            self.add_module(f"inception{name}", block)
            channels = found[name] = block.out_channels
        self.aux1 = Auxiliary(found["4a"], classes, width) if aux else None
        self.aux2 = Auxiliary(found["4d"], classes, width) if aux else None
        self.avgpool = AdaptiveAvgPool2d(1)
        self.flatten = Flatten()
        self.dropout = Dropout(0.2)
        self.fc = Linear(channels, classes)
        for part in self.modules():
            if isinstance(part, Conv2d | Linear):
                init.trunc_normal_(part.weight, 0.01)

    def forward(self, x: Value) -> Value | Scores:
        x = self.conv3(self.conv2(self.maxpool1(self.conv1(x))))
        x = self.maxpool3(self.inception3b(self.inception3a(self.maxpool2(x))))
        middle = self.inception4a(x)
        late = self.inception4d(self.inception4c(self.inception4b(middle)))
        x = self.maxpool4(self.inception4e(late))
        x = self.inception5b(self.inception5a(x))
        scores: Value = self.fc(self.dropout(self.flatten(self.avgpool(x))))
        if self.aux1 is None or self.aux2 is None or not self.training:
            return scores
        return Scores(scores, self.aux2(late), self.aux1(middle))


@register("googlenet", paper=PAPER, input=TensorType((3, 224, 224)), classes=1000, params=6_624_904)
def googlenet(
    classes: int = 1000, image: int = 224, width: float = 1.0, aux: bool = False
) -> GoogLeNet:
    """The usual one; with ``aux`` training gives the scores of all three heads."""
    return GoogLeNet(classes, image, width, aux)
