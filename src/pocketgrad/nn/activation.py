"""Activation layers: an operation each, with its settings.

``inplace`` is accepted for familiarity and ignored: the plan decides what overwrites what.
"""

from __future__ import annotations

from pocketgrad.ir.core import Value
from pocketgrad.nn.module import Module
from pocketgrad.ops import activation, transcendental


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, x: Value) -> Value:
        return transcendental.relu(x)


class ReLU6(Module):
    """x kept within 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, x: Value) -> Value:
        return activation.relu6(x)


class LeakyReLU(Module):
    """x, times ``negative_slope`` where negative."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Value) -> Value:
        return activation.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """x, or alpha (exp(x) - 1) where negative."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Value) -> Value:
        return activation.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class SiLU(Module):
    """x · sigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, x: Value) -> Value:
        return activation.silu(x)


class Hardswish(Module):
    """x · relu6(x + 3) / 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, x: Value) -> Value:
        return activation.hardswish(x)


class Hardsigmoid(Module):
    """relu6(x + 3) / 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, x: Value) -> Value:
        return activation.hardsigmoid(x)


class GELU(Module):
    """x · Φ(x), exactly (``none``) or by the ``tanh`` formula."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Value) -> Value:
        return activation.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(beta x)) / beta."""

    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        self.beta = beta

    def forward(self, x: Value) -> Value:
        return activation.softplus(x, self.beta)

    def extra_repr(self) -> str:
        return f"beta={self.beta}"


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Value) -> Value:
        return transcendental.sigmoid(x)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, x: Value) -> Value:
        return transcendental.tanh(x)


class Softmax(Module):
    """Shares of exp(x) along an axis, the last by default."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Value) -> Value:
        return activation.softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """Logarithm of the softmax along an axis, the last by default."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Value) -> Value:
        return activation.log_softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
