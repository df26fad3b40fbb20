"""What several models are made of: widths, convolution with norm, He's first values."""

from __future__ import annotations

from typing import TypeVar

from pocketgrad.base.errors import SettingError
from pocketgrad.nn import init
from pocketgrad.nn.activation import ReLU, ReLU6
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm2d

M = TypeVar("M", bound=Module)

SMALL = 112  # below this size an image is too small for a stem that shrinks it four times or more


def scaled(channels: int, width: float, multiple: int = 1) -> int:
    """A number of channels times a width, rounded to a multiple and never below 90 % of it."""
    if not width > 0:
        raise SettingError(f"width is a factor on all channels and above 0, got {width}")
    wanted = channels * width
    rounded = max(multiple, int(wanted + multiple / 2) // multiple * multiple)
    return rounded + multiple if rounded < 0.9 * wanted else rounded


def conv_norm(
    channels: tuple[int, int], window: int, stride: int = 1, groups: int = 1, six: bool = False
) -> Sequential:
    """A convolution that keeps the size (at stride 1), batch norm, and ReLU or ReLU6."""
    return Sequential(
        Conv2d(*channels, window, stride, (window - 1) // 2, groups=groups, bias=False),
        BatchNorm2d(channels[1]),
        ReLU6() if six else ReLU(),
    )


def he_initialised(model: M, linear_std: float | None = None) -> M:
    """Convolutions begin with He's normal numbers by fan out, as torchvision's models do."""
    for part in model.modules():
        if isinstance(part, Conv2d):
            init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            if part.bias is not None:
                init.zeros_(part.bias)
        elif isinstance(part, Linear) and linear_std is not None:
            init.normal_(part.weight, 0.0, linear_std)
            if part.bias is not None:
                init.zeros_(part.bias)
    return model
