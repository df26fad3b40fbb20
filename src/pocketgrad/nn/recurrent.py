"""LSTM and GRU over sequences, stacked and bidirectional, with PyTorch's parameter names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pocketgrad.base.errors import SettingError, ShapeError
from pocketgrad.ir.core import Value
from pocketgrad.nn import init
from pocketgrad.nn.dropout import dropped
from pocketgrad.nn.module import Module
from pocketgrad.nn.parameter import Parameter
from pocketgrad.ops import recurrent
from pocketgrad.ops.move import concat, reshape, slice_, stack, swap
from pocketgrad.ops.source import constant


class Recurrent(Module):
    """Base: x is [T, N, C], or [N, T, C] with ``batch_first``; states are [layers · ways, N, H]."""

    gates: ClassVar[int]
    states: ClassVar[int]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        if num_layers < 1 or hidden_size < 1:
            raise SettingError(
                f"{type(self).__name__} needs num_layers and hidden_size of at least 1, "
                f"got {num_layers} and {hidden_size}"
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.ways = ("", "_reverse") if bidirectional else ("",)
        drawn = init.within(init.inverse_root(hidden_size))
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = hidden_size * len(self.ways) if layer else input_size
            for name in self._names(layer):
                matrix = (rows, width if "_ih" in name else hidden_size)
                shape = matrix if name.startswith("weight") else (rows,)
                self.register_parameter(name, Parameter(shape=shape, init=drawn))

    def _names(self, layer: int) -> list[str]:
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if self.bias else 2]
        return [f"{kind}_l{layer}{way}" for way in self.ways for kind in kinds]

    def _weights(self, layer: int, way: int) -> recurrent.Weights:
        names = self._names(layer)
        per_way = len(names) // len(self.ways)
        chosen = names[way * per_way : (way + 1) * per_way]
        return recurrent.Weights(*(getattr(self, name) for name in chosen))

    def run(
        self, x: Value, states: Sequence[Value], weights: recurrent.Weights, reverse: bool
    ) -> tuple[Value, ...]:
        """One layer in one direction: every step's output, then the last states."""
        raise NotImplementedError

    def unroll(self, x: Value, first: Sequence[Value] | None) -> tuple[Value, list[Value]]:
        """Every step's output of the last layer, and the last states of all."""
        if len(x.shape) != 3 or x.shape[2] != self.input_size:
            axes = "[batch, steps" if self.batch_first else "[steps, batch"
            raise ShapeError(
                f"{type(self).__name__} takes {axes}, {self.input_size}], got {x.type}"
            )
        x = swap(x, 0, 1) if self.batch_first else x
        first = self._first(x) if first is None else first
        last: list[list[Value]] = [[] for _ in range(self.states)]
        for layer in range(self.num_layers):
            if layer and self.training:
                x = dropped(x, self.dropout)
            outputs = []
            for way in range(len(self.ways)):
                position = layer * len(self.ways) + way
                begin = [self._at(state, position, x.shape[1]) for state in first]
                weights = self._weights(layer, way)
                out, *ends = self.run(x, begin, weights, reverse=way == 1)
                outputs.append(out)
                for collected, end in zip(last, ends, strict=True):
                    collected.append(end)
            x = concat(outputs, axis=2)
        x = swap(x, 0, 1) if self.batch_first else x
        return x, [stack(collected) for collected in last]

    def _first(self, x: Value) -> list[Value]:
        shape = (self.num_layers * len(self.ways), x.shape[1], self.hidden_size)
        return [constant(0.0, x.dtype, shape)] * self.states

    def _at(self, state: Value, position: int, batch: int) -> Value:
        wanted = (self.num_layers * len(self.ways), batch, self.hidden_size)
        if state.shape != wanted:
            raise ShapeError(f"a first state must have shape {wanted}, got {state.type}")
        return reshape(slice_(state, 0, position, position + 1), wanted[1:])

    def extra_repr(self) -> str:
        ways = ", bidirectional=True" if len(self.ways) == 2 else ""
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}{ways}"


class LSTM(Recurrent):
    """Long short-term memory: output, (h, c)."""

    gates, states = 4, 2

    def run(
        self, x: Value, states: Sequence[Value], weights: recurrent.Weights, reverse: bool
    ) -> tuple[Value, ...]:
        return recurrent.lstm(x, states[0], states[1], weights, reverse)

    def forward(self, x: Value, hx: tuple[Value, Value] | None = None) -> Any:
        output, (h, c) = self.unroll(x, hx)
        return output, (h, c)


class GRU(Recurrent):
    """Gated recurrent unit: output, h."""

    gates, states = 3, 1

    def run(
        self, x: Value, states: Sequence[Value], weights: recurrent.Weights, reverse: bool
    ) -> tuple[Value, ...]:
        return recurrent.gru(x, states[0], weights, reverse)

    def forward(self, x: Value, hx: Value | None = None) -> Any:
        output, (h,) = self.unroll(x, None if hx is None else [hx])
        return output, h
