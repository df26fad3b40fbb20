"""Losses as modules: prediction, target, and a weight per sample where some count more or less.

They own nothing that is trained or saved, and so may be called outside of a model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pocketgrad.base.dtypes import DType, int32
from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import Value
from pocketgrad.nn.module import Module
from pocketgrad.nn.tracing import active
from pocketgrad.ops import loss
from pocketgrad.ops.arithmetic import cast, mul
from pocketgrad.ops.compare import eq, where
from pocketgrad.ops.embed import embedding
from pocketgrad.ops.move import reshape, stack
from pocketgrad.ops.source import constant


class Loss(Module):
    """Base: how the losses of samples become one number."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in loss.REDUCTIONS:
            known = ", ".join(loss.REDUCTIONS)
            raise SettingError(f"reduction is one of {known}, not '{reduction}'")
        self.reduction = reduction

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # as forward()
        return super().__call__(*args, **kwargs) if active() else self.forward(*args, **kwargs)

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


def _numbers(given: ArrayLike | None) -> tuple[float, ...] | None:
    if given is None:
        return None
    array = np.asarray(given, np.float64)
    if array.ndim != 1:
        raise SettingError(f"a weight is one number per class, got shape {array.shape}")
    return tuple(array.tolist())


def _row(numbers: tuple[float, ...]) -> Value:
    return stack([constant(number) for number in numbers])


class CrossEntropyLoss(Loss):
    """-log softmax(logits)[label]; ``weight`` is one number per class."""

    def __init__(
        self,
        weight: ArrayLike | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        if weight is not None and label_smoothing:
            raise SettingError("CrossEntropyLoss takes a weight or label_smoothing, not both")
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.weight = _numbers(weight)

    def forward(self, x: Value, target: Value, sample_weight: Value | None = None) -> Value:
        if self.weight is not None:
            of_class = self._of_class(self.weight, target, x.dtype)
            sample_weight = of_class if sample_weight is None else mul(of_class, sample_weight)
        return loss.cross_entropy(
            x,
            target,
            sample_weight,
            label_smoothing=self.label_smoothing,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )

    def _of_class(self, weight: tuple[float, ...], target: Value, dtype: DType) -> Value:
        label = cast(target, int32)
        legal = where(eq(label, self.ignore_index), 0, label)
        table = reshape(_row(weight), (-1, 1))
        return cast(reshape(embedding(table, legal), target.shape), dtype)


class BCEWithLogitsLoss(Loss):
    """Binary cross-entropy of sigmoid(logits); ``pos_weight`` multiplies that of targets of 1."""

    def __init__(self, reduction: str = "mean", pos_weight: ArrayLike | None = None) -> None:
        super().__init__(reduction)
        self.pos_weight = _numbers(pos_weight)

    def forward(self, x: Value, target: Value, sample_weight: Value | None = None) -> Value:
        factor = None if self.pos_weight is None else cast(_row(self.pos_weight), x.dtype)
        return loss.bce_with_logits(x, target, sample_weight, factor, self.reduction)


class MSELoss(Loss):
    """Squared difference."""

    def forward(self, x: Value, target: Value, sample_weight: Value | None = None) -> Value:
        return loss.mse(x, target, sample_weight, self.reduction)


class L1Loss(Loss):
    """Absolute difference."""

    def forward(self, x: Value, target: Value, sample_weight: Value | None = None) -> Value:
        return loss.l1(x, target, sample_weight, self.reduction)


class HuberLoss(Loss):
    """Squared near 0, linear beyond ``delta``."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: Value, target: Value, sample_weight: Value | None = None) -> Value:
        return loss.huber(x, target, sample_weight, self.delta, self.reduction)


class SmoothL1Loss(Loss):
    """Huber's loss with slope 1."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, x: Value, target: Value, sample_weight: Value | None = None) -> Value:
        return loss.smooth_l1(x, target, sample_weight, self.beta, self.reduction)
