"""Questions answered by a span of a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad import data
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.questions import CLS, PAD, SEP, UNKNOWN, spoken
from pocketgrad.nn.module import Module
from pocketgrad.tasks.api import Source, Task, lines_of, require
from pocketgrad.train.trainer import Trainer
from pocketgrad.zoo.registry import ModelCard

SHOWN = 3
LONGEST = 30  # tokens of an answer


class Answer(Task):
    """Where the answer starts and ends."""

    usual = "spans"
    clip_norm = 1.0

    def fitting(self, source: data.Dataset) -> Source:
        fits = source.parts == 3 and len(source.vocabularies) == 1
        require(source, fits, "questions about texts: spans, or SQuAD's .json file")
        return source

    def model(self, card: ModelCard, source: Source, **options: Any) -> Module:
        return card.make(vocabulary=len(source.vocabularies[0]), **options)

    def measure(self, trainer: Trainer, source: Source) -> dict[str, Any]:
        """Beside the loss, the share of answers that are exact, and the mean overlap as F1."""
        test = source.test
        found = best_spans(trainer.predict(test.x[:]), test.x[:, 2])
        exact = (found == test.y).all(axis=1)
        overlap = np.minimum(found, test.y)[:, 1] - np.maximum(found, test.y)[:, 0] + 1
        lengths = (found[:, 1] - found[:, 0] + 1) + (test.y[:, 1] - test.y[:, 0] + 1)
        f1 = 2 * np.maximum(overlap, 0) / lengths
        measured = super().measure(trainer, source)
        return measured | {"exact": float(exact.mean()), "f1": float(f1.mean())}

    def samples(self, trainer: Trainer, source: Source, path: Path | None) -> list[str]:
        super().samples(trainer, source, path)
        return _answers(trainer, source, source.test.x[:SHOWN])

    def predict(self, trainer: Trainer, source: Source, path: Path) -> list[str]:
        """The answer to each line: a question, a tab, a text. Words are those of the vocabulary."""
        rows = []
        for number, line in enumerate(lines_of(path), 1):
            question, tab, text = line.partition("\t")
            if not tab:
                raise DataError(f"'{path}', line {number}: expected a question, a tab and a text")
            rows.append(_encoded(question.split(), text.split(), source))
        return _answers(trainer, source, np.stack(rows))


def best_spans(scores: Array, present: Array) -> Array:
    """The first and last position [N, 2] of the best span, of scores [N, L, 2]."""
    start, end = (np.where(present > 0, scores[:, :, i], -np.inf) for i in (0, 1))
    length = start.shape[1]
    far = np.arange(length)[None, :] - np.arange(length)[:, None]
    legal = (far >= 0) & (far < LONGEST)
    found = np.empty((len(scores), 2), np.int64)
    for i in range(len(scores)):
        both = np.where(legal, start[i][:, None] + end[i][None, :], -np.inf)
        found[i] = divmod(int(np.argmax(both)), length)
    return found


def _encoded(question: list[str], text: list[str], source: data.Dataset) -> Array:
    place = {word: i for i, word in enumerate(source.vocabularies[0])}
    _, length = source.sample_shape
    head = [CLS, *(place.get(w, UNKNOWN) for w in question), SEP]
    body = [*(place.get(w, UNKNOWN) for w in text), SEP]
    if len(head) + len(body) > length:
        raise DataError(
            f"question and text have {len(head) + len(body)} tokens, the model reads {length}"
        )
    row = np.full((3, length), PAD, np.int32)
    row[1:] = 0
    row[0, : len(head) + len(body)] = head + body
    row[1, len(head) : len(head) + len(body)] = 1
    row[2, : len(head) + len(body)] = 1
    return row


def _answers(trainer: Trainer, source: data.Dataset, rows: Array) -> list[str]:
    (vocabulary,) = source.vocabularies
    found = []
    for row, (first, last) in zip(rows, best_spans(trainer.predict(rows), rows[:, 2]), strict=True):
        ends = np.flatnonzero(row[0] == SEP)
        question = spoken(row[0], 1, int(ends[0]) - 1, vocabulary)
        text = spoken(row[0], int(ends[0]) + 1, int(ends[1]) - 1, vocabulary)
        found.append(f"{question} | {text} → {spoken(row[0], int(first), int(last), vocabulary)}")
    return found
