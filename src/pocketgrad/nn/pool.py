"""Pooling layers over [N, C, H, W]."""

from __future__ import annotations

from pocketgrad.ir.core import Value
from pocketgrad.nn.conv import Size
from pocketgrad.nn.module import Module
from pocketgrad.ops import average, pool


class MaxPool2d(Module):
    """The largest of each window."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode

    def forward(self, x: Value) -> Value:
        settings = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        return pool.max_pool2d(x, *settings)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The average of each window."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Value) -> Value:
        shape = (self.kernel_size, self.stride, self.padding)
        return average.avg_pool2d(x, *shape, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptivePool2d(Module):
    """Base of pooling to a given size."""

    def __init__(self, output_size: int | tuple[int | None, int | None]) -> None:
        super().__init__()
        self.output_size = output_size

    def sizes(self, x: Value) -> tuple[int, int]:
        """The output's height and width; None keeps the input's."""
        if isinstance(self.output_size, int):
            return self.output_size, self.output_size
        h, w = self.output_size
        return x.shape[-2] if h is None else h, x.shape[-1] if w is None else w

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool2d(AdaptivePool2d):
    """The average of each of a fixed number of windows."""

    def forward(self, x: Value) -> Value:
        return average.adaptive_avg_pool2d(x, self.sizes(x))


class AdaptiveMaxPool2d(AdaptivePool2d):
    """The largest of each of a fixed number of windows."""

    def forward(self, x: Value) -> Value:
        return pool.adaptive_max_pool2d(x, self.sizes(x))
