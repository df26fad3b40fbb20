"""Text, character by character: what comes next."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad import data
from pocketgrad.base.dtypes import Array
from pocketgrad.data.characters import encoded
from pocketgrad.nn.module import Module
from pocketgrad.tasks.api import Source, Task, lines_of, require
from pocketgrad.train.trainer import Trainer
from pocketgrad.zoo.registry import ModelCard

SHOWN = 200  # characters of a sample
WARMTH = 0.8  # scores are divided by it before drawing


class Continue(Task):
    """The next character."""

    usual = "shakespeare"
    clip_norm = 1.0

    def fitting(self, source: data.Dataset) -> Source:
        fits = source.y.ndim == 2 and source.y.shape == tuple(source.x.shape) and source.classes
        require(source, bool(fits), "a text: shakespeare, moby_dick, or a .txt file")
        return source

    def model(self, card: ModelCard, source: Source, **options: Any) -> Module:
        return card.make(classes=len(source.classes), **options)

    def measure(self, trainer: Trainer, source: Source) -> dict[str, Any]:
        found = super().measure(trainer, source)
        return found | {"bits_per_character": found["test_loss"] / log(2)}

    def samples(self, trainer: Trainer, source: Source, path: Path | None) -> list[str]:
        super().samples(trainer, source, path)
        first = source.classes[int(source.test.x[0, 0])]
        return continued(trainer, source, [first], SHOWN)

    def predict(self, trainer: Trainer, source: Source, path: Path) -> list[str]:
        """Each line with what comes after it."""
        return continued(trainer, source, lines_of(path), SHOWN)


def continued(
    trainer: Trainer, source: data.Dataset, begun: list[str], count: int, seed: int = 0
) -> list[str]:
    """Texts with ``count`` characters added to each, drawn by their probability."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    alphabet, steps = source.classes, source.sample_shape[0]
    known = [list(encoded(text, alphabet)[0]) for text in begun]
    for _ in range(count):
        window = np.zeros((len(known), steps), np.int32)
        for i, codes in enumerate(known):
            part = codes[-steps:]
            window[i, : len(part)] = part  # what stands behind is not seen by what is read
        scores = trainer.predict(window)
        for i, codes in enumerate(known):
            codes.append(_drawn(scores[i, :, min(len(codes), steps) - 1], rng))
    return ["".join(alphabet[c] for c in codes) for codes in known]


def _drawn(scores: Array, rng: np.random.Generator) -> int:
    shares = np.exp((scores.astype(np.float64) - scores.max()) / WARMTH)
    return int(np.searchsorted(np.cumsum(shares), rng.random() * shares.sum()))
