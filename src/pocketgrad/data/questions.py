"""Questions whose answer is a span of a text: SQuAD files, and a made-up task.

x holds tokens, segments (0 question, 1 text) and presence [N, 3, L]; y the positions of the first
and the last token of the answer, both 0 where the window of the text does not hold it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, SettingError
from pocketgrad.data.api import Dataset
from pocketgrad.data.files import read_text

PAD, UNKNOWN, CLS, SEP = range(4)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LENGTH, STRIDE = 128, 64
WORDS = 8000  # of a vocabulary made from the texts themselves
HELD_OUT = 10  # one in so many questions


@dataclass(frozen=True)
class Question:
    """One question of a SQuAD file; the answer as characters of the text, or none."""

    question: str
    context: str
    start: int
    end: int


def spans(samples: int = 4000, length: int = 24, *, seed: int = 0) -> Dataset:
    """A word is asked for; the answer runs from it to the next full stop of the text.

    Each word occurs once in a text, so that a model can reach 100 %.
    """
    if samples < 20 or length < 12:
        raise SettingError(f"spans(samples={samples}, length={length}): choose at least 20 and 12")
    words = tuple(f"w{i}" for i in range(40))
    vocabulary = (*SPECIAL, ".", *words)
    stop, first = len(SPECIAL), len(SPECIAL) + 1
    rng = np.random.Generator(np.random.Philox(key=seed))
    x = np.zeros((samples, 3, length), np.int32)
    y = np.zeros((samples, 2), np.int32)
    body = length - 4  # [CLS] word [SEP] text [SEP]
    for i in range(samples):
        said = rng.permutation(len(words))[:body] + first
        stops = np.arange(int(rng.integers(2, 5)), body, 4)
        said[stops] = stop
        said[-1] = stop
        at = int(rng.choice(np.flatnonzero(said != stop)))
        last = at + int(np.argmax(said[at:] == stop)) - 1
        x[i, 0] = [CLS, said[at], SEP, *said, SEP]
        x[i, 1, 3:] = 1
        x[i, 2] = 1
        y[i] = (at + 3, last + 3)
    test = samples // HELD_OUT
    held_out = Dataset("spans/test", x[:test], y[:test], parts=3, vocabularies=(vocabulary,))
    return Dataset(
        "spans", x[test:], y[test:], held_out=held_out, parts=3, vocabularies=(vocabulary,)
    )


def squad(path: str | Path, length: int = LENGTH, vocabulary: str | Path | None = None) -> Dataset:
    """A SQuAD file (version 1 or 2), in windows of ``length`` tokens that overlap by half.

    ``vocabulary``: a file with a word piece per line, as BERT's; made from the texts if not given.
    The last tenth of the questions is kept for testing.
    """
    path = Path(path)
    found = list(_questions(path))
    if len(found) < 2:
        raise DataError(f"'{path}' has {len(found)} questions; give at least two")
    cut = len(found) - max(1, len(found) // HELD_OUT)
    tokenizer = word_pieces(found[:cut], vocabulary)
    known = tokenizer.get_vocab()
    names = tuple(sorted(known, key=lambda word: int(known[word])))
    test, train = (_windows(tokenizer, part, length) for part in (found[cut:], found[:cut]))
    held_out = Dataset(f"{path.stem}/test", *test, parts=3, vocabularies=(names,))
    return Dataset(path.stem, *train, held_out=held_out, parts=3, vocabularies=(names,))


def word_pieces(found: Sequence[Question], vocabulary: str | Path | None = None) -> Any:
    """A WordPiece tokenizer of a vocabulary, or of the words of the questions and texts."""
    try:
        import tokenizers as t
    except ImportError:
        raise DataError(
            "SQuAD files are read with the package tokenizers: pip install 'pocketgrad[text]'"
        ) from None
    normalizer = t.normalizers.BertNormalizer(lowercase=True)
    splitter = t.pre_tokenizers.BertPreTokenizer()
    if vocabulary is not None:
        pieces = _read_pieces(Path(vocabulary))
    else:
        texts = [q.question for q in found] + list(dict.fromkeys(q.context for q in found))
        words = (splitter.pre_tokenize_str(normalizer.normalize_str(text)) for text in texts)
        pieces = _made_pieces(Counter(word for part in words for word, _ in part))
    tokenizer = t.Tokenizer(t.models.WordPiece(pieces, unk_token=SPECIAL[UNKNOWN]))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    ends = [(name, pieces[name]) for name in (SPECIAL[SEP], SPECIAL[CLS])]
    tokenizer.post_processor = t.processors.BertProcessing(*ends)
    return tokenizer


def _made_pieces(counts: Counter[str]) -> dict[str, int]:
    """All characters, and the most frequent words: what is none of them is spelled.

    The trainer of the package finds better pieces, but other ones each time.
    """
    characters = sorted({c for word in counts for c in word})
    ordered = sorted((w for w in counts if len(w) > 1), key=lambda word: (-counts[word], word))
    names = [*SPECIAL, *characters, *(f"##{c}" for c in characters), *ordered[:WORDS]]
    return {name: i for i, name in enumerate(names)}


def _read_pieces(path: Path) -> dict[str, int]:
    pieces = {w: i for i, w in enumerate(read_text(path).split("\n")) if w}
    absent = [w for w in SPECIAL[:4] if w not in pieces]
    if absent:
        raise DataError(f"'{path}' is no vocabulary of BERT: '{absent[0]}' is missing")
    if pieces[SPECIAL[PAD]] != PAD:
        raise DataError(f"'{path}' is no vocabulary of BERT: '[PAD]' is not its first line")
    return pieces


def spoken(row: Array, start: int, end: int, vocabulary: Sequence[str]) -> str:
    """The tokens from start to end (inclusive) as text."""
    said = ""
    for token in row[start : end + 1]:
        piece = vocabulary[int(token)]
        said += piece[2:] if piece.startswith("##") else f" {piece}"
    return said.strip()


def _windows(tokenizer: Any, found: Sequence[Question], length: int) -> tuple[Array, Array]:
    tokenizer.enable_truncation(length, stride=min(STRIDE, length // 2), strategy="only_second")
    tokenizer.enable_padding(length=length, pad_id=PAD, pad_token=SPECIAL[PAD])
    rows, targets = [], []
    for question in found:
        first = tokenizer.encode(question.question, question.context)
        for window in (first, *first.overflowing):
            rows.append((window.ids, window.type_ids, window.attention_mask))
            targets.append(_positions(window, question))
    return np.array(rows, np.int32), np.array(targets, np.int32)


def _positions(window: Any, question: Question) -> tuple[int, int]:
    """Of the answer's first and last token in a window; 0, 0 where it is not in there whole."""
    if question.end <= question.start:
        return 0, 0
    inside = [
        i
        for i, ((a, b), sequence) in enumerate(
            zip(window.offsets, window.sequence_ids, strict=True)
        )
        if sequence == 1 and b > question.start and a < question.end
    ]
    if not inside:
        return 0, 0
    first, last = window.offsets[inside[0]], window.offsets[inside[-1]]
    whole = first[0] <= question.start and last[1] >= question.end
    return (inside[0], inside[-1]) if whole else (0, 0)


def _questions(path: Path) -> Iterator[Question]:
    try:
        whole = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"'{path}' is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    for a, article in enumerate(_part(path, "", whole, "data", list)):
        at = f"data[{a}]"
        for p, paragraph in enumerate(_part(path, at, article, "paragraphs", list)):
            place = f"{at}.paragraphs[{p}]"
            context = _part(path, place, paragraph, "context", str)
            for q, asked in enumerate(_part(path, place, paragraph, "qas", list)):
                yield _question(path, f"{place}.qas[{q}]", asked, context)


def _question(path: Path, place: str, asked: Any, context: str) -> Question:
    text = _part(path, place, asked, "question", str)
    answers = _part(path, place, asked, "answers", list)
    if not answers:
        if not asked.get("is_impossible", False):
            raise DataError(f"'{path}': {place} has no answer and is not marked is_impossible")
        return Question(text, context, 0, 0)
    place = f"{place}.answers[0]"
    said = _part(path, place, answers[0], "text", str)
    start = _part(path, place, answers[0], "answer_start", int)
    if context[start : start + len(said)] != said:
        raise DataError(
            f"'{path}': {place} says {said[:40]!r} stands at character {start} of the context, "
            f"where {context[start : start + 20]!r} is"
        )
    return Question(text, context, start, start + len(said))


def _part(path: Path, place: str, found: Any, key: str, kind: type) -> Any:
    """A member of a JSON object, of the kind that SQuAD has there."""
    if not isinstance(found, dict) or not isinstance(found.get(key), kind):
        here = f"{place}.{key}" if place else key
        what = type(found[key]).__name__ if isinstance(found, dict) and key in found else "nothing"
        raise DataError(
            f"'{path}' is not a SQuAD file: {here} should be a {kind.__name__}, found {what}"
        )
    return found[key]
