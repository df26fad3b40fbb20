"""What models are trained to do: each task ties models to data, a loss, measures and samples.

``ALL`` is the one table that decides by a model's card; the command line reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.tasks.act import Act
from pocketgrad.tasks.answer import Answer
from pocketgrad.tasks.api import Task
from pocketgrad.tasks.classify import Classify
from pocketgrad.tasks.generate import Generate
from pocketgrad.tasks.proceed import Continue
from pocketgrad.tasks.translate import Translate
from pocketgrad.zoo.registry import ModelCard

ALL: Mapping[str, Task] = {
    "act": Act(),
    "answer": Answer(),
    "classify": Classify(),
    "continue": Continue(),
    "generate": Generate(),
    "translate": Translate(),
}

__all__ = ["ALL", "Task", "task_of"]


def task_of(card: ModelCard) -> Task:
    """What the model of that card is trained to do."""
    return ALL[card.task]
