"""Learning-rate schedules: a factor of the base rate as a function of the step, on the device.

Steps count batches from 0. ``factor`` emits the formula into the step's graph; ``at`` works out the
same operations on the host, for display.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pocketgrad.base.dtypes import Array, float32, int32
from pocketgrad.base.errors import SettingError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.ops.arithmetic import add, cast, div, floor, maximum, minimum, mul, sub
from pocketgrad.ops.compare import ge, lt, where
from pocketgrad.ops.source import constant
from pocketgrad.ops.transcendental import cos, exp


@dataclass(frozen=True)
class Schedule(ABC):
    """Base: subclasses give the factor as a formula of the step as a float32 scalar."""

    @abstractmethod
    def formula(self, t: Value) -> Value:
        """The factor at step ``t``, a float32 scalar from 0."""

    def factor(self, step: Value) -> Value:
        """The factor at an int32 step, a float32 scalar."""
        return self.formula(cast(step, float32))

    def at(self, step: int) -> float:
        """The factor at a step, as a number."""
        with Builder() as builder:
            given = builder.input(TensorType((), int32), "step")
            out = self.factor(given)
        known: dict[Value, Array] = {given: np.asarray(step, np.int32)}
        for node in builder.nodes:
            results = node.op.ref(*(known[v] for v in node.inputs))
            known.update(zip(node.outputs, results, strict=True))
        return float(known[out])


@dataclass(frozen=True)
class ConstantLR(Schedule):
    """The same rate always."""

    value: float = 1.0

    def formula(self, t: Value) -> Value:
        return constant(self.value)


@dataclass(frozen=True)
class StepLR(Schedule):
    """Multiply by ``gamma`` every ``step_size`` steps."""

    step_size: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        _positive(self, "step_size", self.step_size)
        _positive(self, "gamma", self.gamma)

    def formula(self, t: Value) -> Value:
        # Halves keep the quotient clear of a rounding that would fall below the whole number.
        done = floor(div(add(t, 0.5), float(self.step_size)))
        return exp(mul(done, math.log(self.gamma)))


@dataclass(frozen=True)
class MultiStepLR(Schedule):
    """Multiply by ``gamma`` at each milestone."""

    milestones: Sequence[int]
    gamma: float = 0.1

    def formula(self, t: Value) -> Value:
        out = constant(1.0)
        for i, milestone in enumerate(sorted(self.milestones), 1):
            out = where(ge(t, float(milestone)), constant(self.gamma**i), out)
        return out


@dataclass(frozen=True)
class ExponentialLR(Schedule):
    """Multiply by ``gamma`` every step."""

    gamma: float

    def __post_init__(self) -> None:
        _positive(self, "gamma", self.gamma)

    def formula(self, t: Value) -> Value:
        return exp(mul(t, math.log(self.gamma)))


@dataclass(frozen=True)
class LinearLR(Schedule):
    """From ``start`` to ``end`` in ``steps`` steps along a line, then stay."""

    steps: int
    start: float = 1.0
    end: float = 0.0

    def __post_init__(self) -> None:
        _positive(self, "steps", self.steps)

    def formula(self, t: Value) -> Value:
        return _line(_progress(t, 0.0, self.steps), self.start, self.end)


@dataclass(frozen=True)
class CosineLR(Schedule):
    """From 1 to ``end`` in ``steps`` steps along half a cosine, then stay."""

    steps: int
    end: float = 0.0

    def __post_init__(self) -> None:
        _positive(self, "steps", self.steps)

    def formula(self, t: Value) -> Value:
        return _half_cosine(_progress(t, 0.0, self.steps), 1.0, self.end)


@dataclass(frozen=True)
class Warmup(Schedule):
    """Rise from ``start`` to 1 in ``steps`` steps along a line, then follow another schedule."""

    steps: int
    then: Schedule = field(default_factory=ConstantLR)
    start: float = 0.0

    def __post_init__(self) -> None:
        _positive(self, "steps", self.steps)

    def formula(self, t: Value) -> Value:
        n = float(self.steps)
        rise = _line(_progress(t, 0.0, n), self.start, 1.0)
        return where(lt(t, n), rise, self.then.formula(maximum(sub(t, n), 0.0)))


@dataclass(frozen=True)
class OneCycleLR(Schedule):
    """Rise to 1 and fall far below the start (Smith 2018); the base rate is the highest one."""

    total_steps: int
    pct_start: float = 0.3
    anneal: Literal["cos", "linear"] = "cos"
    div_factor: float = 25.0
    final_div_factor: float = 1e4

    def __post_init__(self) -> None:
        if self.total_steps < 2 or not 0 < self.pct_start < 1:
            raise SettingError(
                f"OneCycleLR needs total_steps of at least 2 and pct_start between 0 and 1, "
                f"got {self.total_steps} and {self.pct_start}"
            )

    def formula(self, t: Value) -> Value:
        first, last = 1.0 / self.div_factor, 1.0 / (self.div_factor * self.final_div_factor)
        top, end = self.pct_start * self.total_steps - 1, self.total_steps - 1
        between = _half_cosine if self.anneal == "cos" else _line
        rise = between(_progress(t, 0.0, top), first, 1.0)
        fall = between(_progress(t, top, end), 1.0, last)
        return where(lt(t, top), rise, fall)


def _progress(t: Value, start: float, end: float) -> Value:
    """From 0 at ``start`` to 1 at ``end``, and within both."""
    length = end - start
    if length <= 0:
        return constant(1.0)
    return minimum(maximum(div(sub(t, start), float(length)), 0.0), 1.0)


def _line(progress: Value, start: float, end: float) -> Value:
    return add(mul(progress, end - start), start)


def _half_cosine(progress: Value, start: float, end: float) -> Value:
    return add(mul(add(cos(mul(progress, math.pi)), 1.0), (start - end) / 2), end)


def _positive(schedule: Schedule, name: str, value: float) -> None:
    if not value > 0:
        raise SettingError(f"{type(schedule).__name__}: {name} must be above 0, got {value}")
