"""The table of models: what each takes, where it comes from, and how many parameters it has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.module import Module

Domain = Literal["control", "generation", "language", "study", "vision"]
DOMAINS: tuple[str, ...] = get_args(Domain)
# What a model is trained to do; the table in ``tasks`` says how.
Task = Literal["act", "answer", "classify", "continue", "generate", "translate"]
_TASKS: dict[Domain, Task] = {  # of most models of a domain
    "control": "act",
    "generation": "generate",
    "language": "continue",
    "study": "classify",
    "vision": "classify",
}
LEAST_IMAGE = 32


@dataclass(frozen=True)
class ModelCard:
    """A model by name. ``build`` makes it; ``params`` counts those of the default.

    ``inputs`` are the types of one sample, without the batch. ``classes`` is the default number of
    outputs that ``build(classes=…)`` changes, and 0 for a model that scores no classes.
    """

    name: str
    paper: str
    domain: Domain
    inputs: tuple[TensorType, ...]
    classes: int
    params: int
    build: Callable[..., Module]
    task: Task

    @property
    def input(self) -> TensorType:
        """The first input."""
        return self.inputs[0]

    @cached_property
    def options(self) -> dict[str, Any]:
        """What ``build`` takes, with the defaults."""
        return {n: p.default for n, p in inspect.signature(self.build).parameters.items()}

    def make(self, **options: Any) -> Module:  # numbers, as the model's function takes them
        """The model with options such as ``classes``, ``image`` or ``width``, checked by name."""
        for name in options:
            if name not in self.options:
                raise SettingError(
                    f"the model '{self.name}' has no option '{name}'; "
                    f"it has {', '.join(self.options) or 'none'}"
                )
        return self.build(**options)

    def sample(self, image: int | None = None) -> tuple[TensorType, ...]:
        """The inputs of one sample, for images of another size where one is given."""
        if image is None:
            return self.inputs
        if "image" not in self.options:
            shape = "×".join(map(str, self.input.shape))
            raise SettingError(f"the model '{self.name}' takes {shape} only; leave out image=")
        if image < LEAST_IMAGE:
            raise SettingError(f"image={image} is too small: models take {LEAST_IMAGE} and more")
        return tuple(TensorType((*t.shape[:-2], image, image), t.dtype) for t in self.inputs)


_cards: dict[str, ModelCard] = {}


def register(  # noqa: PLR0913  # a keyword per column of the table
    name: str,
    *,
    paper: str,
    input: TensorType | tuple[TensorType, ...],
    params: int,
    classes: int = 10,
    domain: Domain = "vision",
    task: Task | None = None,
) -> Callable[[Callable[..., Module]], Callable[..., Module]]:
    """Enter the function below into the table; unless ``classes`` is 0 it takes that keyword."""

    def enter(build: Callable[..., Module]) -> Callable[..., Module]:
        if name in _cards:
            raise SettingError(f"two models are named '{name}'")
        inputs = input if isinstance(input, tuple) else (input,)
        aim = task or _TASKS[domain]
        _cards[name] = ModelCard(name, paper, domain, inputs, classes, params, build, aim)
        return build

    return enter


def entered(name: str) -> ModelCard:
    """The card of a model whose module was imported."""
    return _cards[name]
