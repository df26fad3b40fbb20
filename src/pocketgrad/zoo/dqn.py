"""Deep Q-networks (Mnih et al. 2015, https://www.nature.com/articles/nature14236).

``dqn`` sees four frames of a screen, by default with Pong's six actions; ``dqn-vector`` the numbers
of a small environment, by default CartPole's. Both give the value of every action.
"""

from __future__ import annotations

from pocketgrad.ir.core import TensorType
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Flatten, Linear
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
