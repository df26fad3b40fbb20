"""Sentence pairs: a made-up language that can be learned without a mistake, and TSV files.

x holds source and target [N, 2, L], the target beginning with ``<s>``; y is the target moved by
one and closed by ``</s>``. Behind the end stand PAD in x and IGNORED in y, which no loss counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, SettingError
from pocketgrad.data.api import Dataset
from pocketgrad.data.files import read_text

PAD, BEGIN, END, UNKNOWN = range(4)
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
IGNORED = -100
MOST_WORDS = (17191, 7709)  # of the vocabularies, the most frequent ones
HELD_OUT = 10  # one in so many pairs

Pair = tuple[Sequence[str], Sequence[str]]


def reversal(samples: int = 4000, letters: int = 12, longest: int = 8, *, seed: int = 0) -> Dataset:
    """Words a, b, c … into A, B, C … of a permuted alphabet and in reverse order.

    Every source has one right translation, so that a model can reach 100 %.
    """
    if samples < 20 or not 2 <= letters <= 26 or longest < 2:
        raise SettingError(
            f"reversal(samples={samples}, letters={letters}, longest={longest}): choose at least "
            "20 samples, 2 to 26 letters and sentences of 2 words"
        )
    rng = np.random.Generator(np.random.Philox(key=seed))
    meaning = rng.permutation(letters)
    found: dict[tuple[int, ...], None] = {}  # each sentence once: the test part is new
    most = sum(letters**n for n in range(2, longest + 1))
    if most < 2 * samples:
        raise SettingError(f"there are only {most} different sentences; choose fewer samples")
    while len(found) < samples:
        length = int(rng.integers(2, longest + 1))
        found[tuple(int(i) for i in rng.integers(0, letters, length))] = None
    known = [
        ([chr(97 + i) for i in s], [chr(65 + int(meaning[i])) for i in reversed(s)]) for s in found
    ]
    return _dataset("reversal", known)


def pairs(path: str | Path) -> Dataset:
    """A TSV file with a source and a target sentence per line, words parted by spaces."""
    path = Path(path)
    found: list[Pair] = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) < 2 or not columns[0].split() or not columns[1].split():
            raise DataError(
                f"'{path}', line {number}: expected a source sentence, a tab and a target "
                f"sentence, found {len(columns)} column{'s' * (len(columns) != 1)}: {line[:40]!r}"
            )
        found.append((columns[0].split(), columns[1].split()))
    if len(found) < 2:
        raise DataError(f"'{path}' has {len(found)} sentence pairs; give at least two")
    return _dataset(path.stem, found)


def tokens(words: Sequence[str], vocabulary: Sequence[str], length: int) -> Array:
    """Words as positions in a vocabulary, filled up to ``length``."""
    if len(words) > length:
        raise DataError(
            f"the sentence '{' '.join(words)[:40]}' has {len(words)} words, more than the {length} "
            "of the longest one trained on"
        )
    place = {word: i for i, word in enumerate(vocabulary)}
    row = np.full(length, PAD, np.int32)
    row[: len(words)] = [place.get(word, UNKNOWN) for word in words]
    return row


def words(row: Array, vocabulary: Sequence[str]) -> list[str]:
    """What a row of tokens says, up to its end."""
    said: list[str] = []
    for token in row:
        if token in (END, PAD, IGNORED):
            break
        if token != BEGIN:
            said.append(vocabulary[int(token)])
    return said


def _dataset(name: str, found: Sequence[Pair]) -> Dataset:
    test = max(1, len(found) // HELD_OUT)
    vocabularies = tuple(
        _vocabulary([pair[side] for pair in found[:-test]], MOST_WORDS[side]) for side in (0, 1)
    )
    length = max(max(len(s), len(t) + 1) for s, t in found)
    x = np.zeros((len(found), 2, length), np.int32)
    y = np.full((len(found), length), IGNORED, np.int32)
    for i, (source, target) in enumerate(found):
        x[i, 0] = tokens(source, vocabularies[0], length)
        said = tokens(target, vocabularies[1], length)[: len(target)]
        x[i, 1, : len(target) + 1] = [BEGIN, *said]
        y[i, : len(target) + 1] = [*said, END]
    held_out = Dataset(f"{name}/test", x[-test:], y[-test:], parts=2, vocabularies=vocabularies)
    return Dataset(
        name, x[:-test], y[:-test], held_out=held_out, parts=2, vocabularies=vocabularies
    )


def _vocabulary(sentences: Sequence[Sequence[str]], most: int) -> tuple[str, ...]:
    """The most frequent words; among equally frequent ones the first in the alphabet."""
    counts = Counter(word for sentence in sentences for word in sentence)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return (*SPECIAL, *ordered[: most - len(SPECIAL)])
