"""Acting for reward: deep Q-learning with replay, a target network, and less and less chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad import data
from pocketgrad.base.dtypes import Array, int32
from pocketgrad.base.errors import DataError, SettingError
from pocketgrad.ir.core import Value
from pocketgrad.nn.module import Module
from pocketgrad.ops.arithmetic import add, cast, mul
from pocketgrad.ops.embed import one_hot
from pocketgrad.ops.extremes import max_
from pocketgrad.ops.loss import huber
from pocketgrad.ops.move import reshape, slice_
from pocketgrad.ops.reduce import sum_
from pocketgrad.tasks.api import Source, Task
from pocketgrad.train.batches import inputs_of
from pocketgrad.train.step import Stored
from pocketgrad.train.trainer import Trainer
from pocketgrad.zoo.dqn import DeepQ
from pocketgrad.zoo.registry import ModelCard

DISCOUNT = 0.99
EPISODES = 100
BATCH, EVERY = 64, 500  # samples of a step; steps between two looks of the target network
UPDATES = 1000  # steps in an epoch
# Steps between two batches, before the first one, until chance is at its least; and memory.
NUMBERS: dict[str, Any] = {"every": 1, "warm": 1000, "explore_over": 5000, "capacity": 50_000}
SCREENS: dict[str, Any] = {"every": 4, "warm": 5000, "explore_over": 100_000, "capacity": 20_000}


class Act(Task):
    """The action of the highest value."""

    usual = "cartpole"
    schedule = "constant"
    clip_norm = 10.0

    def load(self, name: str, note: Callable[[str], object] = str) -> Source:
        if name not in data.ENVIRONMENTS:
            raise DataError(
                f"'{name}' is no environment; a model that acts takes one of "
                f"{', '.join(data.ENVIRONMENTS)}"
            )
        world = data.environment(name)
        pixels = world.dtype == "uint8"
        return data.Experience(world, BATCH, updates=UPDATES, **(SCREENS if pixels else NUMBERS))

    def model(self, card: ModelCard, source: Source, **options: Any) -> Module:
        world = source.world
        images = len(world.shape) == 3
        if images != ("frames" in card.options):
            raise DataError(
                f"the model '{card.name}' takes {card.input}, the states of '{world.name}' are "
                f"{world.dtype}{list(world.shape)}; take {'dqn' if images else 'dqn-vector'}"
            )
        size = {"frames": world.shape[0]} if images else {"state": world.shape[0]}
        return DeepQ(card.make(classes=world.actions, **size, **options), EVERY)

    def loss_for(self, source: Source) -> Any:
        return bellman

    def steps(self, source: Source, batch: int) -> int:
        if batch != source.batch:
            source.batch = batch
        return len(source)

    def prepare(self, trainer: Trainer, source: Source) -> None:
        source.policy = policy_of(trainer, source)

    def measure(self, trainer: Trainer, source: Source) -> dict[str, Any]:
        """The mean return of episodes without chance."""
        returns = data.play(source.name, policy_of(trainer, source), EPISODES)
        return {
            "test_loss": None,
            "test_accuracy": None,
            "mean_return": float(np.mean(returns)),
            "solved_at": source.world.solved,
            "training_episodes": len(source.returns),
        }

    def predict(self, trainer: Trainer, source: Source, path: Path) -> list[str]:
        raise SettingError("a model that acts is judged by its returns; --predict is for files")


def policy_of(trainer: Trainer, source: data.Experience) -> data.Policy:
    """The action of the highest value in each state."""
    stored = Stored(source.mean, source.std)

    def policy(states: Array) -> Array:
        inputs = inputs_of(states, np.zeros(len(states), np.float32), stored)
        best: Array = trainer.session.predict(inputs, states).argmax(axis=1)
        return best

    return policy


def bellman(outputs: tuple[Value, Value], y: Value, weight: Value) -> Value:
    """How far the value of what was done is from its reward and the best value after it."""
    values, later = outputs
    action, reward, goes_on = (reshape(slice_(y, 1, i, i + 1), (y.shape[0],)) for i in range(3))
    chosen = one_hot(cast(action, int32), values.shape[1])
    worth = add(reward, mul(mul(goes_on, max_(later, 1)), DISCOUNT))
    return huber(sum_(mul(values, chosen), 1), worth, weight)
