"""Networks of one kind of layer, by depth and width (Chen et al. 2019, tables 4 and 5, figure 10).

``fc-dD-wW``, ``conv-dD-wW`` and ``separable-dD-wW`` on CIFAR-10 images. As in the paper there is no
activation, no pooling, no bias and no head; ``classes`` adds a head.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from pocketgrad.ir.core import TensorType
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.pool import AdaptiveAvgPool2d
from pocketgrad.zoo.registry import register

PAPER = "Chen et al. 2019, Exploring the capabilities of mobile devices in supporting deep learning"
INPUT = TensorType((3, 32, 32))
KINDS = ("fc", "conv", "separable")
DEPTHS = (1, 2, 4, 8)
WIDTHS = (64, 128, 256, 512)


def grid_name(kind: str, depth: int, width: int) -> str:
    """The name of one cell."""
    return f"{kind}-d{depth}-w{width}"


def layer(kind: str, channels: int, out: int) -> list[Module]:
    """One layer of this kind."""
    if kind == "fc":
        return [Linear(channels, out, bias=False)]
    if kind == "conv":
        return [Conv2d(channels, out, 3, padding=1, bias=False)]
    depthwise = Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
    return [depthwise, Conv2d(channels, out, 1, bias=False)]


def stack_of(kind: str, depth: int, width: int, classes: int | None = None) -> Sequential:
    """``depth`` layers of ``width`` outputs, and a head if there are classes."""
    flat = kind == "fc"
    layers: list[Module] = [Flatten()] if flat else []
    for channels, out in pairwise((INPUT.size if flat else 3, *(width,) * depth)):
        layers += layer(kind, channels, out)
    if classes is not None:
        layers += [] if flat else [AdaptiveAvgPool2d(1), Flatten()]
        layers.append(Linear(width, classes))
    return Sequential(*layers)


def count(kind: str, depth: int, width: int) -> int:
    """Parameters of one cell, by formula."""
    if kind == "fc":
        return INPUT.size * width + (depth - 1) * width**2
    if kind == "conv":
        return 27 * width + (depth - 1) * 9 * width**2
    return 27 + 3 * width + (depth - 1) * (9 * width + width**2)


def _cell(kind: str, depth: int, width: int) -> Callable[..., Module]:
    def build(classes: int | None = None) -> Module:
        return stack_of(kind, depth, width, classes)

    return build


for _kind in KINDS:
    for _depth in DEPTHS:
        for _width in WIDTHS:
            register(
                grid_name(_kind, _depth, _width),
                paper=PAPER,
                input=INPUT,
                params=count(_kind, _depth, _width),
                classes=0,
                domain="study",
            )(_cell(_kind, _depth, _width))
