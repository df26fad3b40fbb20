"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pocketgrad.base.errors import SettingError, ShapeError
from pocketgrad.ir.core import Value
from pocketgrad.nn import init
from pocketgrad.nn.module import Module
from pocketgrad.nn.parameter import Parameter
from pocketgrad.ops import norm
from pocketgrad.ops.arithmetic import add, cast, div


def add_affine(module: Module, shape: tuple[int, ...], weight: bool, bias: bool) -> None:
    """Give a layer a factor that starts at 1 and a shift that starts at 0, each if wanted."""
    factor = Parameter(shape=shape, init=init.ones) if weight else None
    shift = Parameter(shape=shape, init=init.zeros) if bias else None
    module.register_parameter("weight", factor)
    module.register_parameter("bias", shift)


class BatchNorm(Module):
    """Base: normalise each channel by the batch's statistics, in use by those of training.

    ``momentum`` is the share of the new batch in the running statistics; None averages all.
    """

    axes: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.track_running_stats = track_running_stats
        add_affine(self, (num_features,), affine, affine)
        if track_running_stats:
            self.register_buffer("running_mean", np.zeros(num_features, np.float32))
            self.register_buffer("running_var", np.ones(num_features, np.float32))
            self.register_buffer("num_batches_tracked", np.zeros((), np.int64))

    def forward(self, x: Value) -> Value:
        if len(x.shape) not in self.axes or x.shape[1] != self.num_features:
            raise ShapeError(
                f"{type(self).__name__} takes {' or '.join(map(str, self.axes))} axes with "
                f"{self.num_features} channels second, got {x.type}"
            )
        affine = (self.weight, self.bias, self.eps)
        if self.track_running_stats and not self.training:
            return norm.batch_norm_eval(x, self.running_mean, self.running_var, *affine)
        batch = norm.batch_norm_train(x, *affine)
        if self.track_running_stats:
            seen: Value = add(self.num_batches_tracked, 1)
            share: Value | float
            share = div(1.0, cast(seen, x.dtype)) if self.momentum is None else self.momentum
            old = self.running_mean, self.running_var
            mean, variance = norm.running_statistics(old, batch, share)
            self.update_buffer("running_mean", mean)
            self.update_buffer("running_var", variance)
            self.update_buffer("num_batches_tracked", seen)
        return batch.y

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(BatchNorm):
    """Over [N, C] or [N, C, L]."""

    axes = (2, 3)


class BatchNorm2d(BatchNorm):
    """Over [N, C, H, W]."""

    axes = (4,)


class LayerNorm(Module):
    """Normalise each sample over its last axes."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape, self.eps = tuple(shape), eps
        add_affine(self, self.normalized_shape, elementwise_affine, elementwise_affine and bias)

    def forward(self, x: Value) -> Value:
        return norm.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(Module):
    """Normalise each sample over groups of channels."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise SettingError(f"GroupNorm: {num_groups} groups do not divide {num_channels}")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        add_affine(self, (num_channels,), affine, affine)

    def forward(self, x: Value) -> Value:
        return norm.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class LocalResponseNorm(Module):
    """Divide by the energy of neighbouring channels (Krizhevsky et al. 2012)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Value) -> Value:
        return norm.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
