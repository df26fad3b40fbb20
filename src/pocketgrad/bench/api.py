"""What is compared, who takes part, and what an adapter must be able to do.

A participant runs in a process of its own, maybe in another environment: this module, `network`,
`task` and `worker` import nothing but the standard library and NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pocketgrad.bench.task import Task


@dataclass(frozen=True)
class Variant:
    """One way to use a framework. ``env`` is set before its process starts."""

    name: str
    meaning: str
    precision: str = "float32"
    env: Mapping[str, str] = field(default_factory=dict)
    default: bool = True  # measured unless variants are named


@dataclass(frozen=True)
class Participant:
    """An adapter in one of its variants; of ours, the variant is the device."""

    adapter: str
    variant: Variant

    @property
    def name(self) -> str:
        """Both names: 'torch:channels-last', 'pocketgrad:pocl'."""
        return f"{self.adapter}:{self.variant.name}"


class Session(Protocol):
    """A network on a framework, ready to train."""

    def reset(self) -> None:
        """The first weights again, momentum and counters at zero, the first batch next."""

    def step(self) -> None:
        """Enqueue one training step on the next batch: forward, backward, update."""

    def sync(self) -> float:
        """Wait until every step has ended with its update; the loss of the last one."""

    def facts(self) -> Mapping[str, Any]:
        """What only it can tell: launches, bytes of its arena, options it chose."""

    def close(self) -> None:
        """Free what it holds."""


class Adapter(Protocol):
    """A module of ``bench.adapters``."""

    REQUIRES: tuple[str, ...]  # modules that must be importable
    VARIANTS: tuple[Variant, ...]

    def version(self) -> str:
        """Import the framework; its version."""

    def open_session(self, task: Task, variant: Variant) -> Session:
        """Build the network with the task's weights; NotWrittenError where there is no form."""
