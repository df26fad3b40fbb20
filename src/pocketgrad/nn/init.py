"""Initial values, as PyTorch draws them by default.

An initialiser is a pure function of a generator and a shape. The functions that end in an
underscore choose one for a parameter; numbers are drawn when the model gets its seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError, ShapeError
from pocketgrad.nn.parameter import Parameter

Shape = tuple[int, ...]
Init = Callable[[np.random.Generator, Shape], Array]
Mode = Literal["fan_in", "fan_out"]


def stream(seed: int, name: str) -> np.random.Generator:
    """The generator of one parameter: adding a layer does not change what the others get."""
    return np.random.default_rng(np.random.SeedSequence([seed & (2**64 - 1), *name.encode()]))


def fans(shape: Shape) -> tuple[int, int]:
    """Inputs and outputs that one element of a weight [out, in, …window] connects."""
    if len(shape) < 2:
        raise ShapeError(f"fan in and out need at least two axes, got shape {shape}")
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def gain(nonlinearity: str, a: float = 0.0) -> float:
    """The factor that keeps the variance through a nonlinearity (He et al. 2015)."""
    table = {
        "linear": 1.0,
        "conv": 1.0,
        "sigmoid": 1.0,
        "tanh": 5 / 3,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1 + a**2)),
        "selu": 0.75,
    }
    if nonlinearity not in table:
        raise SettingError(f"no gain for '{nonlinearity}'; known: {', '.join(table)}")
    return table[nonlinearity]


def constant(rng: np.random.Generator, shape: Shape, value: float) -> Array:
    """One number everywhere."""
    return np.full(shape, value)


def zeros(rng: np.random.Generator, shape: Shape) -> Array:
    """0 everywhere."""
    return np.zeros(shape)


def ones(rng: np.random.Generator, shape: Shape) -> Array:
    """1 everywhere."""
    return np.ones(shape)


def normal(rng: np.random.Generator, shape: Shape, mean: float = 0.0, std: float = 1.0) -> Array:
    """Normal numbers."""
    return rng.normal(mean, std, shape)


def trunc_normal(
    rng: np.random.Generator, shape: Shape, std: float = 1.0, bound: float = 2.0
) -> Array:
    """Normal numbers, drawn again until they lie within ``bound`` (not in units of ``std``)."""
    out = rng.normal(0.0, std, shape)
    while (outside := np.abs(out) > bound).any():
        out[outside] = rng.normal(0.0, std, int(outside.sum()))
    return out


def uniform(rng: np.random.Generator, shape: Shape, low: float = 0.0, high: float = 1.0) -> Array:
    """Uniform numbers in [low, high)."""
    return rng.uniform(low, high, shape)


def kaiming_uniform(
    rng: np.random.Generator,
    shape: Shape,
    a: float = 0.0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
) -> Array:
    """Uniform numbers of variance gain² / fan."""
    bound = math.sqrt(3.0) * _kaiming_std(shape, a, mode, nonlinearity)
    return rng.uniform(-bound, bound, shape)


def kaiming_normal(
    rng: np.random.Generator,
    shape: Shape,
    a: float = 0.0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
) -> Array:
    """Normal numbers of variance gain² / fan."""
    return rng.normal(0.0, _kaiming_std(shape, a, mode, nonlinearity), shape)


def xavier_uniform(rng: np.random.Generator, shape: Shape, gain: float = 1.0) -> Array:
    """Uniform numbers of variance gain² · 2 / (fan in + fan out)."""
    bound = gain * math.sqrt(6.0 / sum(fans(shape)))
    return rng.uniform(-bound, bound, shape)


def xavier_normal(rng: np.random.Generator, shape: Shape, gain: float = 1.0) -> Array:
    """Normal numbers of variance gain² · 2 / (fan in + fan out)."""
    return rng.normal(0.0, gain * math.sqrt(2.0 / sum(fans(shape))), shape)


def _kaiming_std(shape: Shape, a: float, mode: Mode, nonlinearity: str) -> float:
    fan = fans(shape)[0 if mode == "fan_in" else 1]
    return gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def layer_weight() -> Init:
    """PyTorch's default for linear and convolution weights."""
    return partial(kaiming_uniform, a=math.sqrt(5.0))


def within(bound: float) -> Init:
    """Uniform in ±bound: PyTorch's default for biases and recurrent weights."""
    return partial(uniform, low=-bound, high=bound)


def inverse_root(n: int) -> float:
    """1 / √n, and 0 for no inputs at all."""
    return 1.0 / math.sqrt(n) if n else 0.0


def zeros_(parameter: Parameter) -> Parameter:
    """Start at 0."""
    return parameter.begin_with(zeros)


def ones_(parameter: Parameter) -> Parameter:
    """Start at 1."""
    return parameter.begin_with(ones)


def constant_(parameter: Parameter, value: float) -> Parameter:
    """Start at a number."""
    return parameter.begin_with(partial(constant, value=value))


def normal_(parameter: Parameter, mean: float = 0.0, std: float = 1.0) -> Parameter:
    """Start with normal numbers."""
    return parameter.begin_with(partial(normal, mean=mean, std=std))


def trunc_normal_(parameter: Parameter, std: float = 1.0, bound: float = 2.0) -> Parameter:
    """Start with normal numbers within ±bound."""
    return parameter.begin_with(partial(trunc_normal, std=std, bound=bound))


def uniform_(parameter: Parameter, low: float = 0.0, high: float = 1.0) -> Parameter:
    """Start with uniform numbers."""
    return parameter.begin_with(partial(uniform, low=low, high=high))


def kaiming_uniform_(
    parameter: Parameter,
    a: float = 0.0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
) -> Parameter:
    """Start with He's uniform numbers."""
    fans(parameter.shape)
    drawn = partial(kaiming_uniform, a=a, mode=mode, nonlinearity=nonlinearity)
    return parameter.begin_with(drawn)


def kaiming_normal_(
    parameter: Parameter,
    a: float = 0.0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
) -> Parameter:
    """Start with He's normal numbers."""
    fans(parameter.shape)
    return parameter.begin_with(partial(kaiming_normal, a=a, mode=mode, nonlinearity=nonlinearity))


def xavier_uniform_(parameter: Parameter, gain: float = 1.0) -> Parameter:
    """Start with Glorot's uniform numbers."""
    fans(parameter.shape)
    return parameter.begin_with(partial(xavier_uniform, gain=gain))


def xavier_normal_(parameter: Parameter, gain: float = 1.0) -> Parameter:
    """Start with Glorot's normal numbers."""
    fans(parameter.shape)
    return parameter.begin_with(partial(xavier_normal, gain=gain))
