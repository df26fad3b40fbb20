"""The table of models: what each takes, where it comes from, and how many parameters it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.module import Module


@dataclass(frozen=True)
class ModelCard:
    """A model by name. ``build(classes=…)`` makes it; ``params`` counts those of the default."""

    name: str
    paper: str
    input: TensorType  # of one sample, without the batch
    classes: int
    params: int
    build: Callable[..., Module]


_cards: dict[str, ModelCard] = {}


def register(
    name: str, *, paper: str, input: TensorType, params: int, classes: int = 10
) -> Callable[[Callable[..., Module]], Callable[..., Module]]:
    """Enter the function below into the table; it takes ``classes`` as a keyword."""

    def enter(build: Callable[..., Module]) -> Callable[..., Module]:
        if name in _cards:
            raise SettingError(f"two models are named '{name}'")
        _cards[name] = ModelCard(name, paper, input, classes, params, build)
        return build

    return enter


def entered(name: str) -> ModelCard:
    """The card of a model whose module was imported."""
    return _cards[name]
