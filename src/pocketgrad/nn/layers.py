"""Linear and embedding layers, and those that only pass on: identity, flatten, dropout."""

from __future__ import annotations

from functools import partial

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import Value
from pocketgrad.nn import init
from pocketgrad.nn.module import Module
from pocketgrad.nn.parameter import Parameter
from pocketgrad.ops.arithmetic import add, detach
from pocketgrad.ops.compare import eq, where
from pocketgrad.ops.embed import embedding
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.move import reshape


class Identity(Module):
    """Passes its input on; takes and ignores any arguments."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, x: Value) -> Value:
        return x


class Flatten(Module):
    """Joins the axes from ``start_dim`` to ``end_dim``."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Value) -> Value:
        rank = len(x.shape)
        start, end = self.start_dim % max(rank, 1), self.end_dim % max(rank, 1)
        joined = 1
        for n in x.shape[start : end + 1]:
            joined *= n
        return reshape(x, (*x.shape[:start], joined, *x.shape[end + 1 :]))

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Linear(Module):
    """x Wᵀ + b over the last axis; W is [out_features, in_features]."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        add_weight_and_bias(self, (out_features, in_features), in_features, out_features, bias)

    def forward(self, x: Value) -> Value:
        rows = reshape(x, (1, *x.shape)) if len(x.shape) == 1 else x
        y = matmul(rows, self.weight, transpose_b=True)
        y = reshape(y, (*x.shape[:-1], self.out_features))
        return y if self.bias is None else add(y, self.bias)

    def extra_repr(self) -> str:
        bias = "bias" in self._parameters and self._parameters["bias"] is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}"


class Embedding(Module):
    """Rows of a table by index; the row at ``padding_idx`` starts at 0 and is not trained."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise SettingError(
                    f"padding_idx {padding_idx} is no row of a table of {num_embeddings}"
                )
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        drawn = partial(_table, zero=padding_idx)
        table = Parameter(shape=(num_embeddings, embedding_dim), init=drawn)
        self.register_parameter("weight", table)

    def forward(self, index: Value) -> Value:
        rows = embedding(self.weight, index)
        if self.padding_idx is None:
            return rows
        padded = reshape(eq(index, self.padding_idx), (*index.shape, 1))
        return where(padded, detach(rows), rows)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _table(rng: np.random.Generator, shape: tuple[int, ...], zero: int | None) -> Array:
    table = init.normal(rng, shape)
    if zero is not None:
        table[zero] = 0.0
    return table


def add_weight_and_bias(
    module: Module, shape: tuple[int, ...], fan_in: int, outputs: int, bias: bool
) -> None:
    """Give a layer PyTorch's default weight, and its bias unless it has none."""
    lies = (1, 0) if len(shape) == 2 else ()  # x Wᵀ then reads vectors along the outputs
    module.register_parameter("weight", Parameter(shape=shape, init=init.layer_weight(), lies=lies))
    drawn = init.within(init.inverse_root(fan_in))
    module.register_parameter("bias", Parameter(shape=(outputs,), init=drawn) if bias else None)
