"""The three networks that Chen et al. 2019 trained on phones (table 2 of the paper), on CIFAR-10.

- Mentee (Venkatesan and Li 2016, https://arxiv.org/abs/1604.08220): 2×2 average pooling follows
  every convolution, and ``classes=1000`` gives the 26.89 M parameters that the paper states.
- MobileNet (https://arxiv.org/abs/1704.04861): the line "Conv/dw 3×3×256×256" is depthwise. The
  5.48 M parameters of the text cannot be met from the lines printed, whichever way it is read.
- ResNet: the printed convolutions, widths of a wide ResNet; the table has no projections, so only
  the two convolutions that keep their shape have a shortcut.

A 7×7 pooling in the second and an 8×8 pooling in the third mean that both shrink 32×32 twice.
"""

from __future__ import annotations

from itertools import pairwise

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.pool import AvgPool2d
from pocketgrad.ops.arithmetic import add
from pocketgrad.zoo.blocks import conv_norm, he_initialised, scaled
from pocketgrad.zoo.registry import register

PAPER = "Chen et al. 2019, Exploring the capabilities of mobile devices in supporting deep learning"
INPUT = TensorType((3, 32, 32))


@register("mentee", paper=PAPER, input=INPUT, params=22_834_314)
def mentee(classes: int = 10, width: float = 1.0) -> Sequential:
    """Five convolutions with pooling from 32×32 to 1×1, three linear layers."""
    layers: list[Module] = []
    for channels, out in pairwise((3, *(scaled(n, width) for n in (64, 128, 256, 512, 512)))):
        layers += [Conv2d(channels, out, 3, padding=1), ReLU(), AvgPool2d(2)]
    features, hidden = scaled(512, width), scaled(4096, width)
    return Sequential(
        *layers, Flatten(),
        Linear(features, hidden), ReLU(),
        Linear(hidden, hidden), ReLU(),
        Linear(hidden, classes),
    )  # fmt: skip


@register("reduced-mobilenet", paper=PAPER, input=INPUT, params=136_778)
def reduced_mobilenet(classes: int = 10, width: float = 1.0) -> Sequential:
    """A convolution and five separable ones, the second and fourth at stride 2."""
    sizes = [scaled(n, width) for n in (32, 64, 128, 128, 256, 256)]
    layers: list[Module] = [conv_norm((3, sizes[0]), 3)]
    for (channels, out), stride in zip(pairwise(sizes), (1, 2, 1, 2, 1), strict=True):
        layers.append(conv_norm((channels, channels), 3, stride, groups=channels))
        layers.append(conv_norm((channels, out), 1))
    return he_initialised(Sequential(*layers, AvgPool2d(7), Flatten(), Linear(sizes[-1], classes)))


class Residual(Module):
    """A layer around which its input is added."""

    def __init__(self, inner: Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Value) -> Value:
        return add(x, self.inner(x))


@register("reduced-resnet", paper=PAPER, input=INPUT, params=6_946_074)
def reduced_resnet(classes: int = 10, width: float = 1.0) -> Sequential:
    """Six convolutions; the third and the fifth at stride 2."""
    a, b, c, d = (scaled(n, width) for n in (16, 160, 320, 640))
    return he_initialised(
        Sequential(
            conv_norm((3, a), 3),
            conv_norm((a, b), 3),
            conv_norm((b, c), 3, stride=2),
            Residual(conv_norm((c, c), 3)),
            conv_norm((c, d), 3, stride=2),
            Residual(conv_norm((d, d), 3)),
            AvgPool2d(8),
            Flatten(),
            Linear(d, classes),
        )
    )
