"""Activation layers: an operation each, with its settings."""

from __future__ import annotations

from pocketgrad.ir.core import Value
from pocketgrad.nn.module import Module
from pocketgrad.ops import transcendental


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()  # ``inplace`` is the plan's decision here, accepted for familiarity

    def forward(self, x: Value) -> Value:
        return transcendental.relu(x)
