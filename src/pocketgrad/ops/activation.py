"""Activation functions made of other operations; fusion makes one kernel of each.

Values and gradients at kinks are those of torch.nn.functional. A NaN stays a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import Value
from pocketgrad.ops.arithmetic import abs_, add, detach, div, maximum, mul, neg, sub
from pocketgrad.ops.compare import ge, gt, isfinite, lt, where
from pocketgrad.ops.extremes import max_
from pocketgrad.ops.move import reshape
from pocketgrad.ops.reduce import normal_axes, sum_
from pocketgrad.ops.transcendental import erf, exp, expm1, log, log1p, relu, sigmoid, tanh


def square(x: Value) -> Value:
    """x * x."""
    return mul(x, x)


def clip(x: Value, low: float | None = None, high: float | None = None) -> Value:
    """x kept within bounds; the gradient passes where x is at a bound."""
    if low is None and high is None:
        raise SettingError("clip() got no bound; give low, high or both")
    if low is not None:
        x = where(lt(x, low), low, x)
    if high is not None:
        x = where(gt(x, high), high, x)
    return x


def relu6(x: Value) -> Value:
    """x kept within 0 and 6; the gradient at both is 0."""
    return relu(where(ge(x, 6.0), 6.0, x))


def leaky_relu(x: Value, slope: float = 0.01) -> Value:
    """x, times ``slope`` where not positive."""
    return where(gt(x, 0.0), x, mul(x, slope))


def elu(x: Value, alpha: float = 1.0) -> Value:
    """x, or alpha * (exp(x) - 1) where not positive."""
    below = where(gt(x, 0.0), 0.0, x)  # else the branch not taken overflows, and 0 * inf is NaN
    return where(gt(x, 0.0), x, mul(expm1(below), alpha))


def silu(x: Value) -> Value:
    """x * sigmoid(x)."""
    return mul(x, sigmoid(x))


def hardsigmoid(x: Value) -> Value:
    """relu6(x + 3) / 6."""
    return mul(relu6(add(x, 3.0)), 1 / 6)


def hardswish(x: Value) -> Value:
    """x * hardsigmoid(x)."""
    return mul(x, hardsigmoid(x))


def gelu(x: Value, approximate: str = "none") -> Value:
    """x times the normal distribution function, exactly or by PyTorch's ``tanh`` formula."""
    if approximate == "none":
        half = erf(mul(x, math.sqrt(0.5)))
    elif approximate == "tanh":
        cubic = add(x, mul(mul(x, mul(x, x)), 0.044715))
        half = tanh(mul(cubic, math.sqrt(2 / math.pi)))
    else:
        raise SettingError(f"gelu's approximate is 'none' or 'tanh', not '{approximate}'")
    return mul(mul(x, 0.5), add(half, 1.0))


def softplus(x: Value, beta: float = 1.0) -> Value:
    """log(1 + exp(beta * x)) / beta, without overflow."""
    scaled = mul(x, beta)
    return mul(add(maximum(scaled, 0.0), log1p(exp(neg(abs_(scaled))))), 1 / beta)


def logsumexp(x: Value, axes: int | Sequence[int] = -1, keepdims: bool = False) -> Value:
    """log of the sum of exp along axes, without overflow."""
    largest = detach(max_(x, axes, keepdims=True))
    largest = where(isfinite(largest), largest, 0.0)  # inf - inf is NaN
    total = add(log(sum_(exp(sub(x, largest)), axes, keepdims=True)), largest)
    if keepdims:
        return total
    dropped = normal_axes(axes, len(x.shape))
    return reshape(total, [n for i, n in enumerate(x.shape) if i not in dropped])


def softmax(x: Value, axis: int = -1) -> Value:
    """exp(x) over its sum along an axis, without overflow."""
    grown = exp(sub(x, detach(max_(x, axis, keepdims=True))))
    return div(grown, sum_(grown, axis, keepdims=True))


def log_softmax(x: Value, axis: int = -1) -> Value:
    """log of softmax along an axis."""
    shifted = sub(x, detach(max_(x, axis, keepdims=True)))
    return sub(shifted, log(sum_(exp(shifted), axis, keepdims=True)))
