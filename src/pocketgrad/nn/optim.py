"""Optimisers: how a flat parameter changes, given its flat gradient, as PyTorch 2 defines it.

An optimiser is a frozen description. ``update`` emits pointwise operations only, so that one launch
runs over all parameters. State starts at zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Self

from pocketgrad.base.dtypes import int32
from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.ir.core import Value
from pocketgrad.ops.arithmetic import add, cast, div, maximum, minimum, mul, neg, sub
from pocketgrad.ops.compare import eq, where
from pocketgrad.ops.pointwise import Operand
from pocketgrad.ops.reduce import sum_
from pocketgrad.ops.source import constant
from pocketgrad.ops.transcendental import expm1, sqrt

State = dict[str, Value]


@dataclass(frozen=True)
class Group:
    """Parameters whose names match a pattern (``*.bias``) get other settings; first match wins."""

    match: str
    lr_scale: float = 1.0
    overrides: Mapping[str, Any] = field(default_factory=dict)  # fields of any optimiser


class Share(NamedTuple):
    """The parameters that are updated together, and how."""

    optimizer: Optimizer
    lr_scale: float
    names: tuple[str, ...]


@dataclass(frozen=True)
class Optimizer(ABC):
    """Base: ``lr`` may be replaced at run time or scaled by a schedule; the rest is fixed."""

    lr: float = 1e-3
    groups: tuple[Group, ...] = field(default=(), kw_only=True)
    clip_norm: float | None = field(default=None, kw_only=True)  # of all gradients together
    clip_value: float | None = field(default=None, kw_only=True)  # of each element

    def __post_init__(self) -> None:
        for name in ("lr", "eps", "weight_decay", "momentum", "clip_norm", "clip_value"):
            value = getattr(self, name, None)
            if value is not None and not value >= 0:
                raise SettingError(f"{type(self).__name__}: {name} must be ≥ 0, got {value}")
        for beta in getattr(self, "betas", ()):
            if not 0 <= beta < 1:
                raise SettingError(f"{type(self).__name__}: betas must be in [0, 1), got {beta}")
        known = [f.name for f in fields(self) if f.name not in {"lr", *_SHARED}]
        for group in self.groups:
            for name in group.overrides:
                if name not in known:
                    raise UnknownNameError(f"{type(self).__name__} setting", name, known)

    @property
    @abstractmethod
    def state_names(self) -> tuple[str, ...]:
        """What is kept per element between steps, by PyTorch's names."""

    @abstractmethod
    def update(
        self, p: Value, g: Value, state: State, lr: Value, step: Value
    ) -> tuple[Value, State]:
        """The new parameter and state; ``lr`` is a scalar, ``step`` an int32 scalar from 1."""

    def shares(self, names: Sequence[str], frozen: Sequence[str] = ()) -> list[Share]:
        """The names divided by group, those of no group last; empty shares are left out.

        A group that matches nothing is a mistake, unless what it matches is ``frozen``.
        """
        plain = self._with({})
        found: dict[int, list[str]] = {i: [] for i in range(len(self.groups) + 1)}
        for name in names:
            matching = (i for i, g in enumerate(self.groups) if fnmatchcase(name, g.match))
            found[next(matching, len(self.groups))].append(name)
        for group in self.groups:
            if not any(fnmatchcase(n, group.match) for n in (*names, *frozen)):
                raise UnknownNameError("parameter", group.match, [*names, *frozen])
        kinds = [(self._with(g.overrides), g.lr_scale) for g in self.groups] + [(plain, 1.0)]
        return [Share(*kinds[i], tuple(members)) for i, members in found.items() if members]

    def clip(self, grads: Sequence[Value]) -> list[Value]:
        """The gradients of all shares, limited as ``clip_value`` and ``clip_norm`` say."""
        limited = list(grads)
        if self.clip_value is not None:
            limited = [clip_by_value(g, self.clip_value) for g in limited]
        if self.clip_norm is not None:
            limited = clip_together(limited, self.clip_norm)
        return limited

    def _with(self, overrides: Mapping[str, Any]) -> Self:
        return replace(self, groups=(), **overrides)


_SHARED = ("groups", "clip_norm", "clip_value")


@dataclass(frozen=True)
class SGD(Optimizer):
    """Gradient descent with momentum, Nesterov's if asked."""

    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and (self.momentum <= 0 or self.dampening != 0):
            raise SettingError("SGD: nesterov needs a momentum above 0 and no dampening")

    @property
    def state_names(self) -> tuple[str, ...]:
        return ("momentum_buffer",) if self.momentum else ()

    def update(
        self, p: Value, g: Value, state: State, lr: Value, step: Value
    ) -> tuple[Value, State]:
        g = _decayed(g, p, self.weight_decay)
        if not self.momentum:
            return sub(p, mul(g, lr)), {}
        share: Operand = 1.0
        if self.dampening:  # the first buffer is the gradient itself
            first = eq(step, constant(1, int32))
            share = where(first, constant(1.0, g.dtype), 1.0 - self.dampening)
        incoming = g if share == 1.0 else mul(g, share)
        buffer = add(mul(state["momentum_buffer"], self.momentum), incoming)
        direction = add(g, mul(buffer, self.momentum)) if self.nesterov else buffer
        return sub(p, mul(direction, lr)), {"momentum_buffer": buffer}


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma & Ba 2015), weight decay added to the gradient; AMSGrad if asked."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False

    @property
    def state_names(self) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if self.amsgrad else ()))

    def update(
        self, p: Value, g: Value, state: State, lr: Value, step: Value
    ) -> tuple[Value, State]:
        return self._adam(p, _decayed(g, p, self.weight_decay), state, lr, step)

    def _adam(
        self, p: Value, g: Value, state: State, lr: Value, step: Value
    ) -> tuple[Value, State]:
        first, second = self.betas
        mean = _towards(state["exp_avg"], g, 1.0 - first)
        square = add(mul(state["exp_avg_sq"], second), mul(mul(g, g), 1.0 - second))
        new = {"exp_avg": mean, "exp_avg_sq": square}
        if self.amsgrad:
            square = new["max_exp_avg_sq"] = maximum(state["max_exp_avg_sq"], square)
        root = sqrt(_correction(second, step, lr))
        size = div(lr, _correction(first, step, lr))
        return sub(p, mul(div(mean, add(div(sqrt(square), root), self.eps)), size)), new


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov & Hutter 2019)."""

    weight_decay: float = 1e-2

    def update(
        self, p: Value, g: Value, state: State, lr: Value, step: Value
    ) -> tuple[Value, State]:
        if self.weight_decay:
            p = mul(p, sub(1.0, mul(lr, self.weight_decay)))
        return self._adam(p, g, state, lr, step)


@dataclass(frozen=True)
class RMSprop(Optimizer):
    """Gradient over its running root mean square; centred and with momentum if asked."""

    lr: float = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False

    @property
    def state_names(self) -> tuple[str, ...]:
        momentum = ("momentum_buffer",) if self.momentum else ()
        return ("square_avg", *momentum, *(("grad_avg",) if self.centered else ()))

    def update(
        self, p: Value, g: Value, state: State, lr: Value, step: Value
    ) -> tuple[Value, State]:
        g = _decayed(g, p, self.weight_decay)
        square = add(mul(state["square_avg"], self.alpha), mul(mul(g, g), 1.0 - self.alpha))
        new, spread = {"square_avg": square}, square
        if self.centered:
            mean = new["grad_avg"] = _towards(state["grad_avg"], g, 1.0 - self.alpha)
            spread = sub(square, mul(mean, mean))
        direction = div(g, add(sqrt(spread), self.eps))
        if self.momentum:
            direction = add(mul(state["momentum_buffer"], self.momentum), direction)
            new["momentum_buffer"] = direction
        return sub(p, mul(direction, lr)), new


def clip_by_value(g: Value, limit: float) -> Value:
    """Every element within ±limit."""
    return minimum(maximum(g, -limit), limit)


def clip_by_norm(g: Value, max_norm: float) -> Value:
    """Scale a gradient down to a Euclidean norm of at most ``max_norm``."""
    return clip_together([g], max_norm)[0]


def clip_together(grads: Sequence[Value], max_norm: float) -> list[Value]:
    """Scale gradients so that their common norm is at most ``max_norm``, as clip_grad_norm_."""
    if not grads:
        return []
    scale = minimum(div(max_norm, add(total_norm(grads), 1e-6)), 1.0)
    return [mul(g, scale) for g in grads]


def total_norm(grads: Sequence[Value]) -> Value:
    """The Euclidean norm of all gradients together."""
    first, *rest = [sum_(mul(g, g)) for g in grads]
    for more in rest:
        first = add(first, more)
    return sqrt(first)


def _decayed(g: Value, p: Value, weight_decay: float) -> Value:
    return add(g, mul(p, weight_decay)) if weight_decay else g


def _towards(old: Value, new: Value, share: float) -> Value:
    """Interpolate; in this form equal values stay exactly what they are."""
    return add(old, mul(sub(new, old), share))


def _correction(beta: float, step: Value, lr: Value) -> Value:
    """1 - beta^step, without cancelling for a beta near 1."""
    if beta == 0:
        return constant(1.0, lr.dtype)
    return neg(expm1(mul(cast(step, lr.dtype), math.log(beta))))


ALL: Mapping[str, type[Optimizer]] = {
    "adam": Adam,
    "adamw": AdamW,
    "rmsprop": RMSprop,
    "sgd": SGD,
}
