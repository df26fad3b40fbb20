"""Worlds to act in: a small one that is built in, CartPole and Pong through Gymnasium.

A state is an array of ``shape`` and ``dtype``; every world's randomness comes from its seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, UnknownNameError

Seen = tuple[Array, float, bool, bool]  # state, reward, whether it is over, whether time is up


class Environment(ABC):
    """Something that changes by actions, and rewards them; ``solved``: the mean return aimed at."""

    name: str
    actions: int
    shape: tuple[int, ...]
    dtype: str = "float32"
    solved: float

    @abstractmethod
    def reset(self, seed: int | None = None) -> Array:
        """Begin anew; the first state."""

    @abstractmethod
    def step(self, action: int) -> Seen:
        """Act once."""


class Grid(Environment):
    """A walker on a field of 5 × 5 seeks a goal; 1 for reaching it, -0.02 for every step.

    A state is the place of the walker and that of the goal, one-hot. The shortest way is at most 8
    steps, on average 3.33; time is up after 30.
    """

    name, actions, shape, solved = "grid", 4, (50,), 0.9
    SIDE, LIMIT = 5, 30
    MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))

    def __init__(self) -> None:
        self._rng = np.random.Generator(np.random.Philox(key=0))
        self._at, self._goal, self._steps = (0, 0), (0, 0), 0

    def reset(self, seed: int | None = None) -> Array:
        if seed is not None:
            self._rng = np.random.Generator(np.random.Philox(key=seed))
        places = self._rng.permutation(self.SIDE**2)[:2]
        self._at, self._goal = (divmod(int(p), self.SIDE) for p in places)
        self._steps = 0
        return self._state()

    def step(self, action: int) -> Seen:
        moved = (a + d for a, d in zip(self._at, self.MOVES[action], strict=True))
        row, column = (min(max(a, 0), self.SIDE - 1) for a in moved)
        self._at = (row, column)
        self._steps += 1
        over = self._at == self._goal
        return self._state(), 0.98 if over else -0.02, over, self._steps >= self.LIMIT

    def _state(self) -> Array:
        state = np.zeros((2, self.SIDE, self.SIDE), np.float32)
        state[0][self._at] = state[1][self._goal] = 1.0
        return state.reshape(-1)


class Gym(Environment):
    """An environment of Gymnasium whose state is a few numbers."""

    def __init__(self, ident: str, name: str, solved: float) -> None:
        self.name, self.solved = name, solved
        self._world = _gymnasium(name).make(ident)
        self.actions = int(self._world.action_space.n)
        self.shape = tuple(self._world.observation_space.shape)

    def reset(self, seed: int | None = None) -> Array:
        state, _ = self._world.reset(seed=seed)
        return np.asarray(state, self.dtype)

    def step(self, action: int) -> Seen:
        state, reward, over, late, _ = self._world.step(action)
        return np.asarray(state, self.dtype), float(reward), bool(over), bool(late)


class Pong(Environment):
    """Pong's screen in grey, 84 × 84, the last four frames of every fourth."""

    name, shape, dtype, solved = "pong", (4, 84, 84), "uint8", 18.0

    def __init__(self) -> None:
        gymnasium = _gymnasium("pong")
        try:
            import ale_py
        except ImportError:
            raise DataError(
                "pong needs the package ale-py: pip install 'pocketgrad[control]'"
            ) from None
        gymnasium.register_envs(ale_py)
        self._world = gymnasium.make(
            "ALE/Pong-v5", obs_type="grayscale", frameskip=4, repeat_action_probability=0.0
        )
        self.actions = int(self._world.action_space.n)
        self._frames = np.zeros(self.shape, np.uint8)

    def reset(self, seed: int | None = None) -> Array:
        screen, _ = self._world.reset(seed=seed)
        self._frames = np.repeat(self._small(screen)[None], self.shape[0], axis=0)
        return self._frames

    def step(self, action: int) -> Seen:
        screen, reward, over, late, _ = self._world.step(action)
        self._frames = np.concatenate([self._frames[1:], self._small(screen)[None]])
        return self._frames, float(reward), bool(over), bool(late)

    @staticmethod
    def _small(screen: Array) -> Array:
        """The field of 160 × 160 at half its size, the larger of two lines, with a margin of 2."""
        field = screen[34:194].reshape(80, 2, 80, 2).max(axis=(1, 3))
        return np.pad(field, 2).astype(np.uint8)


ENVIRONMENTS: Mapping[str, Callable[[], Environment]] = {
    "cartpole": lambda: Gym("CartPole-v1", "cartpole", 475.0),
    "grid": Grid,
    "pong": Pong,
}


def environment(name: str) -> Environment:
    """The one of that name."""
    if name not in ENVIRONMENTS:
        raise UnknownNameError("environment", name, ENVIRONMENTS)
    return ENVIRONMENTS[name]()


def _gymnasium(name: str) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise DataError(
            f"{name} needs the package gymnasium: pip install 'pocketgrad[control]'; "
            "the environment 'grid' is built in"
        ) from None
    return gymnasium
