"""What was lived through in an environment, kept and given again as batches (experience replay).

Acting and learning take turns: before each batch some steps are taken, at random with the share
``explore(steps so far)``, otherwise as ``policy`` says. x holds a state and the one after it
[N, 2, …]; y action, reward, and 1 where it went on [N, 3].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, SettingError
from pocketgrad.data.batch import Batch
from pocketgrad.data.environments import ENVIRONMENTS, Environment, environment

Policy = Callable[[Array], Array]  # states [N, …] to actions [N]


@dataclass(eq=False)
class Experience:
    """An endless source of batches; an epoch is ``updates`` of them. Resuming begins it anew."""

    world: Environment
    batch: int = 64
    seed: int = 0
    updates: int = 1000  # batches in an epoch
    every: int = 1  # steps taken before each batch
    capacity: int = 50_000
    warm: int = 1000  # steps at random before the first batch
    explore_over: int = 5000  # steps until the share of random actions is down
    explore_last: float = 0.05
    policy: Policy | None = None
    parts: int = field(default=2, init=False)
    returns: list[float] = field(default_factory=list, init=False)  # of all episodes that ended
    steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.warm < self.batch or self.capacity < self.warm:
            raise SettingError(
                f"batch {self.batch}, warm {self.warm}, capacity {self.capacity}: each must be at "
                "most the next"
            )
        self.name = self.world.name
        byte = self.world.dtype == "uint8"
        self.mean, self.std = (0.0,), (255.0 if byte else 1.0,)
        self._rng = np.random.Generator(np.random.Philox(key=self.seed))
        self._states = np.zeros((self.capacity, 2, *self.world.shape), self.world.dtype)
        self._known = np.zeros((self.capacity, 3), np.float32)
        self._now = self.world.reset(self.seed)
        self._return = 0.0

    @property
    def x(self) -> Array:
        """Of the type of a sample, without any."""
        return self._states[:0]

    @property
    def y(self) -> Array:
        """Of the type of a target, without any."""
        return self._known[:0]

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one sample, without the batch."""
        return tuple(self._states.shape[1:])

    def __len__(self) -> int:
        return self.updates

    def __iter__(self) -> Iterator[Batch]:
        """The batches of one epoch."""
        while self.steps < self.warm:
            self._act()
        for index in range(self.updates):
            for _ in range(self.every):
                self._act()
            rows = self._rng.integers(0, min(self.steps, self.capacity), self.batch)
            ones = np.ones(self.batch, np.float32)
            yield Batch(self._states[rows], self._known[rows], ones, self.batch, index)

    @property
    def explore(self) -> float:
        """The share of actions that are taken at random now."""
        done = (self.steps - self.warm) / self.explore_over
        return 1.0 - (1.0 - self.explore_last) * min(max(done, 0.0), 1.0)

    def _act(self) -> None:
        if self._rng.random() < self.explore:
            action = int(self._rng.integers(self.world.actions))
        else:
            if self.policy is None:
                raise DataError(f"experience in '{self.name}' has no policy; set .policy")
            action = int(self.policy(self._now[None])[0])
        after, reward, over, late = self.world.step(action)
        at = self.steps % self.capacity
        self._states[at, 0], self._states[at, 1] = self._now, after
        self._known[at] = (action, reward, 0.0 if over else 1.0)
        self.steps += 1
        self._return += reward
        self._now = after
        if over or late:
            self.returns.append(self._return)
            self._now, self._return = self.world.reset(), 0.0


def play(
    name: str, policy: Policy, episodes: int = 100, *, together: int = 20, seed: int = 10_000
) -> list[float]:
    """The return of each episode when ``policy`` decides alone, ``together`` at a time."""
    if name not in ENVIRONMENTS:
        environment(name)  # raises
    found: list[float] = []
    together = min(together, episodes)
    worlds = [environment(name) for _ in range(together)]
    while len(found) < episodes:
        now = np.stack([w.reset(seed + len(found) + i) for i, w in enumerate(worlds)])
        totals, running = np.zeros(together), np.ones(together, bool)
        while running.any():
            actions = policy(now)
            for i in np.flatnonzero(running):
                now[i], reward, over, late = worlds[i].step(int(actions[i]))
                totals[i] += reward
                running[i] = not (over or late)
        found.extend(float(t) for t in totals)
    return found[:episodes]
