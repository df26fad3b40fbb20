"""Convolution layers, in PyTorch's layouts: weights [out, in / groups, …window]."""

from __future__ import annotations

import math
from typing import Literal

from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import Value
from pocketgrad.nn.layers import add_weight_and_bias
from pocketgrad.nn.module import Module
from pocketgrad.ops.conv import conv1d, conv2d, conv_transpose2d
from pocketgrad.ops.move import pad

Size = int | tuple[int, int]
Padding = Size | Literal["same", "valid"]


def both(size: Size) -> tuple[int, int]:
    """One size for each of two axes."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])


class Convolution(Module):
    """Base: what all convolutions are given."""

    def __init__(
        self, channels: tuple[int, int], window: tuple[int, ...], groups: int, bias: bool
    ) -> None:
        super().__init__()
        if groups < 1 or any(n % groups for n in channels):
            raise SettingError(
                f"{type(self).__name__}: groups={groups} must divide the channels "
                f"{channels[0]} in and {channels[1]} out"
            )
        self.in_channels, self.out_channels = channels
        self.kernel_size, self.groups = window, groups
        shape = (*self.outer(channels, groups), *window)
        add_weight_and_bias(self, shape, math.prod(shape[1:]), channels[1], bias)

    def outer(self, channels: tuple[int, int], groups: int) -> tuple[int, int]:
        """The first two sizes of the weight."""
        return channels[1], channels[0] // groups

    def extra_repr(self) -> str:
        window = "×".join(map(str, self.kernel_size))
        return f"{self.in_channels}, {self.out_channels}, kernel_size={window}"


class Conv1d(Convolution):
    """Convolution along the last axis of [N, C, L]."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int | Literal["same", "valid"] = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__((in_channels, out_channels), (kernel_size,), groups, bias)
        self.stride, self.dilation = stride, dilation
        self.sides = _sides(padding, (kernel_size,), (stride,), (dilation,))

    def forward(self, x: Value) -> Value:
        ((before, after),) = self.sides
        if before != after:
            x, before = pad(x, [(0, 0), (0, 0), (before, after)]), 0
        settings = (self.stride, before, self.dilation, self.groups)
        return conv1d(x, self.weight, self.bias, *settings)


class Conv2d(Convolution):
    """Convolution over the last two axes of [N, C, H, W]."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Padding = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__((in_channels, out_channels), both(kernel_size), groups, bias)
        self.stride, self.dilation = both(stride), both(dilation)
        self.sides = _sides(padding, both(kernel_size), self.stride, self.dilation)

    def forward(self, x: Value) -> Value:
        (top, bottom), (left, right) = self.sides
        padding = (top, left)
        if (top, left) != (bottom, right):
            x, padding = pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)]), (0, 0)
        settings = (self.stride, padding, self.dilation, self.groups)
        return conv2d(x, self.weight, self.bias, *settings)


class ConvTranspose2d(Convolution):
    """Transposed convolution over the last two axes; the weight is [in, out / groups, R, S]."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
    ) -> None:
        super().__init__((in_channels, out_channels), both(kernel_size), groups, bias)
        self.stride, self.padding, self.dilation = both(stride), both(padding), both(dilation)
        self.output_padding = both(output_padding)

    def outer(self, channels: tuple[int, int], groups: int) -> tuple[int, int]:
        return channels[0], channels[1] // groups

    def forward(self, x: Value) -> Value:
        settings = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return conv_transpose2d(x, self.weight, self.bias, *settings)


def _sides(
    padding: Padding, window: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Padding before and after each axis; "same" puts the odd element after, as PyTorch."""
    if isinstance(padding, str):
        if padding == "valid":
            return [(0, 0)] * len(window)
        if any(s != 1 for s in stride):
            raise SettingError(f"padding='same' needs stride 1, got {stride}")
        totals = [d * (k - 1) for k, d in zip(window, dilation, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    sizes = (padding,) * len(window) if isinstance(padding, int) else padding
    return [(n, n) for n in sizes]
