"""Deep Q-networks (Mnih et al. 2015, https://www.nature.com/articles/nature14236).

``dqn`` sees four frames of a screen, by default with Pong's six actions; ``dqn-vector`` the numbers
of a small environment, by default CartPole's. Both give the value of every action. `DeepQ` is what
trains: one of them and its target network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.tracing import require
from pocketgrad.ops.arithmetic import detach, mod
from pocketgrad.ops.compare import eq, where
from pocketgrad.zoo.blocks import scaled
from pocketgrad.zoo.registry import register

PAPER = "Mnih et al. 2015, Human-level control through deep reinforcement learning"


@register(
    "dqn", paper=PAPER, input=TensorType((4, 84, 84)), classes=6, params=1_687_206,
    domain="control",
)  # fmt: skip
def dqn(classes: int = 6, width: float = 1.0, frames: int = 4) -> Sequential:
    """Three convolutions (84 → 20 → 9 → 7) and two linear layers; ``classes`` are actions."""
    a, b, hidden = (scaled(n, width) for n in (32, 64, 512))
    return Sequential(
        Conv2d(frames, a, 8, 4), ReLU(),
        Conv2d(a, b, 4, 2), ReLU(),
        Conv2d(b, b, 3), ReLU(),
        Flatten(), Linear(b * 49, hidden), ReLU(),
        Linear(hidden, classes),
    )  # fmt: skip


@register(
    "dqn-vector", paper=PAPER, input=TensorType((4,)), classes=2, params=17_410, domain="control"
)
def dqn_vector(classes: int = 2, width: float = 1.0, state: int = 4) -> Sequential:
    """Two hidden layers of 128; ``classes`` are actions."""
    hidden = scaled(128, width)
    return Sequential(
        Linear(state, hidden), ReLU(), Linear(hidden, hidden), ReLU(), Linear(hidden, classes)
    )


class DeepQ(Module):
    """Values of all actions in a state, and those in the state after it by the target network.

    The target network is the online one as it was at the latest multiple of ``every`` steps. It is
    kept as buffers, and taken over inside the step.
    """

    def __init__(self, online: Module, every: int = 500) -> None:
        super().__init__()
        self.online, self.every = online, every
        for name, parameter in online.named_parameters():
            self.register_buffer(_target(name), np.zeros(parameter.shape, np.float32))

    def forward(self, state: Value, following: Value | None = None) -> Any:
        values: Value = self.online(state)
        if following is None:
            return values
        trace = require("DeepQ")
        _, step = trace.random
        targets: dict[str, Value] = {}
        for name, parameter in self.online.named_parameters():
            kept: Value = getattr(self, _target(name))
            full = trace.name(parameter, name)
            if self.training:
                kept = where(eq(mod(step, self.every), 0), detach(trace.values[full]), kept)
                self.update_buffer(_target(name), kept)
            targets[full] = kept
        with trace.instead(targets):
            later: Value = self.online(following)
        return values, detach(later)

    def extra_repr(self) -> str:
        return f"every={self.every}"


def _target(name: str) -> str:
    return f"target_{name.replace('.', '_')}"
