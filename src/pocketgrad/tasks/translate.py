"""Sentences into another language; trained with the right words so far, decoded by beam search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad import data
from pocketgrad.base.dtypes import Array
from pocketgrad.data.translation import BEGIN, END, PAD, tokens, words
from pocketgrad.nn.module import Module
from pocketgrad.tasks.api import Source, Task, lines_of, require
from pocketgrad.train.trainer import Trainer
from pocketgrad.zoo.registry import ModelCard

WIDTH = 3  # sentences kept while decoding
JUDGED = 1000  # sentences of the test part that are decoded
SHOWN = 3


class Translate(Task):
    """Words to words."""

    usual = "reversal"
    clip_norm = 5.0

    def fitting(self, source: data.Dataset) -> Source:
        fits = source.parts == 2 and len(source.vocabularies) == 2
        require(source, fits, "sentence pairs: reversal, or a .tsv file")
        return source

    def model(self, card: ModelCard, source: Source, **options: Any) -> Module:
        read, said = source.vocabularies
        return card.make(classes=len(said), source=len(read), **options)

    def measure(self, trainer: Trainer, source: Source) -> dict[str, Any]:
        """Beside the loss, the share of sentences that are translated without a mistake."""
        found = super().measure(trainer, source)
        test = source.test
        x, y = test.x[:JUDGED], test.y[:JUDGED]
        target = source.vocabularies[1]
        said = [words(row, target) for row in beam(trainer, x[:, 0])]
        right = [words(row, target) for row in y]
        return found | {"exact": float(np.mean([a == b for a, b in zip(said, right, strict=True)]))}

    def samples(self, trainer: Trainer, source: Source, path: Path | None) -> list[str]:
        super().samples(trainer, source, path)
        return _shown(trainer, source, source.test.x[:SHOWN, 0])

    def predict(self, trainer: Trainer, source: Source, path: Path) -> list[str]:
        """The translation of each line."""
        length = source.sample_shape[1]
        read = source.vocabularies[0]
        rows = [tokens(line.split(), read, length) for line in lines_of(path)]
        return _shown(trainer, source, np.stack(rows))


@dataclass
class _Beam:
    """Some beginnings of one translation, each with the log of its probability."""

    rows: Array  # [width, length]
    scores: Array  # [width]
    done: Array  # [width], bool

    def extend(self, log_shares: Array, step: int) -> None:
        """The best of all beginnings with one word more."""
        width, count = log_shares.shape
        log_shares = log_shares.copy()
        log_shares[self.done] = -np.inf
        log_shares[self.done, PAD] = 0.0  # what has ended stays as it is
        totals = (self.scores[:, None] + log_shares).reshape(-1)
        best = np.argsort(-totals, kind="stable")[:width]
        origin, word = best // count, best % count
        self.rows, self.done = self.rows[origin].copy(), self.done[origin].copy()
        self.scores = totals[best]
        if step + 1 < self.rows.shape[1]:
            self.rows[:, step + 1] = word
        self.done |= word == END


def beam(trainer: Trainer, source: Array, width: int = WIDTH) -> Array:
    """The likeliest translation of each row of source tokens, without its begin."""
    count, length = source.shape
    width = min(width, 8)
    beams = []
    for _ in range(count):
        rows = np.full((width, length + 1), PAD, np.int32)
        rows[:, 0] = BEGIN
        scores = np.full(width, -np.inf)
        scores[0] = 0.0  # all beginnings are the same one
        beams.append(_Beam(rows, scores, np.zeros(width, bool)))
    repeated = np.repeat(source, width, axis=0)
    for step in range(length):
        if all(b.done.all() for b in beams):
            break
        begun = np.concatenate([b.rows[:, :length] for b in beams])
        found = trainer.predict(np.stack([repeated, begun], axis=1))[:, :, step]
        shares = _log_softmax(found).reshape(count, width, -1)
        for b, log_shares in zip(beams, shares, strict=True):
            b.extend(log_shares, step)
    return np.stack([b.rows[int(np.argmax(b.scores)), 1:] for b in beams])


def _log_softmax(scores: Array) -> Array:
    wide = scores.astype(np.float64)
    wide -= wide.max(1, keepdims=True)
    out: Array = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    return out


def _shown(trainer: Trainer, source: data.Dataset, rows: Array) -> list[str]:
    read, target = source.vocabularies
    return [
        f"{' '.join(words(a, read))} → {' '.join(words(b, target))}"
        for a, b in zip(rows, beam(trainer, rows), strict=True)
    ]
