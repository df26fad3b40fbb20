"""Dropout, with a mask that is made again from seed, step and position in the model."""

from __future__ import annotations

from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import Value
from pocketgrad.nn import tracing
from pocketgrad.nn.module import Module
from pocketgrad.ops import random


def dropped(x: Value, p: float) -> Value:
    """``x`` with each element 0 at probability ``p``; every call in a trace draws its own mask."""
    if p == 0:
        return x
    trace = tracing.require("dropout")
    return random.dropout(x, p, *trace.random, trace.next_stream())


class Dropout(Module):
    """In training, each element 0 at probability ``p`` and the others divided by 1 - p."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise SettingError(f"Dropout: p is a probability, got {p}")
        self.p = p

    def forward(self, x: Value) -> Value:
        return dropped(x, self.p) if self.training else x

    def extra_repr(self) -> str:
        return f"p={self.p}"
