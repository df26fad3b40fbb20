"""LSTM and GRU, step by step, with PyTorch's gate order and weights.

x is [T,N,C], states are [N,H]; ``w_ih`` is [gates*H, C], ``w_hh`` [gates*H, H], biases [gates*H].
The sequence is unrolled; what does not depend on the state is one matrix product for all steps.
"""

from __future__ import annotations

from typing import NamedTuple

from pocketgrad.base.errors import ShapeError
from pocketgrad.ir.core import Value
from pocketgrad.ops.arithmetic import add, mul, sub
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.move import reshape, slice_, split, stack
from pocketgrad.ops.transcendental import sigmoid, tanh


class Weights(NamedTuple):
    """The parameters of one layer in one direction."""

    w_ih: Value
    w_hh: Value
    b_ih: Value | None = None
    b_hh: Value | None = None


def lstm_cell(x: Value, h: Value, c: Value, weights: Weights) -> tuple[Value, Value]:
    """One step: the next h and c."""
    _check(x, h, weights, gates=4)
    return _lstm_step(_project(x, weights.w_ih, weights.b_ih), h, c, weights)


def gru_cell(x: Value, h: Value, weights: Weights) -> Value:
    """One step: the next h."""
    _check(x, h, weights, gates=3)
    return _gru_step(_project(x, weights.w_ih, weights.b_ih), h, weights)


def lstm(
    x: Value, h: Value, c: Value, weights: Weights, reverse: bool = False
) -> tuple[Value, Value, Value]:
    """Every step's h as [T,N,H], and the last h and c; ``reverse`` runs from the end."""
    _check(x, h, weights, gates=4)
    seen = []
    for part in _steps(x, weights, reverse):
        h, c = _lstm_step(part, h, c, weights)
        seen.append(h)
    return stack(seen[::-1] if reverse else seen), h, c


def gru(x: Value, h: Value, weights: Weights, reverse: bool = False) -> tuple[Value, Value]:
    """Every step's h as [T,N,H], and the last; ``reverse`` runs from the end."""
    _check(x, h, weights, gates=3)
    seen = []
    for part in _steps(x, weights, reverse):
        h = _gru_step(part, h, weights)
        seen.append(h)
    return stack(seen[::-1] if reverse else seen), h


def _lstm_step(part: Value, h: Value, c: Value, weights: Weights) -> tuple[Value, Value]:
    gates = add(part, _project(h, weights.w_hh, weights.b_hh))
    i, f, g, o = split(gates, h.shape[1], axis=1)
    c = add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)))
    return mul(sigmoid(o), tanh(c)), c


def _gru_step(part: Value, h: Value, weights: Weights) -> Value:
    size = h.shape[1]
    x_r, x_z, x_n = split(part, size, axis=1)
    h_r, h_z, h_n = split(_project(h, weights.w_hh, weights.b_hh), size, axis=1)
    r, z = sigmoid(add(x_r, h_r)), sigmoid(add(x_z, h_z))
    new = tanh(add(x_n, mul(r, h_n)))
    return add(new, mul(z, sub(h, new)))


def _steps(x: Value, weights: Weights, reverse: bool) -> list[Value]:
    steps = x.shape[0]
    if steps == 0:
        raise ShapeError(f"a sequence needs at least one step, got {x.type}")
    parts = _project(x, weights.w_ih, weights.b_ih)
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    return [reshape(slice_(parts, 0, t, t + 1), parts.shape[1:]) for t in order]


def _project(x: Value, w: Value, b: Value | None) -> Value:
    y = matmul(x, w, transpose_b=True)
    return y if b is None else add(y, b)


def _check(x: Value, h: Value, weights: Weights, gates: int) -> None:
    wide, narrow = weights.w_ih.shape, weights.w_hh.shape
    size = gates * h.shape[-1]
    if wide != (size, x.shape[-1]) or narrow != (size, h.shape[-1]):
        raise ShapeError(
            f"input {x.type} and state {h.type} with {gates} gates take weights "
            f"({size}, {x.shape[-1]}) and ({size}, {h.shape[-1]}), got {wide} and {narrow}"
        )
