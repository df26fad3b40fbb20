"""Texts, sentence pairs and questions: what samples hold, and that their tasks can be solved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pocketgrad import data
from pocketgrad.data import questions, translation
from pocketgrad.data.characters import ALPHABET, NONE


def test_a_text_is_read_as_characters_and_the_next_ones(tmp_path) -> None:
    path = tmp_path / "é.txt"
    path.write_text("the cat söt on the mät " * 40, encoding="utf-8")
    made = data.load(path)
    assert made.sample_shape == (64,)
    said = "".join(made.classes[i] for i in made.x[0])
    assert said == ("the cat söt on the mät " * 4)[:64]
    np.testing.assert_array_equal(made.x[:].reshape(-1)[1:], made.y.reshape(-1)[:-1])
    assert len(made.test) == (len(made) + len(made.test)) // 10


@pytest.mark.parametrize(
    ("name", "letters", "size"), [("shakespeare", 71, 80), ("moby-dick", 82, 350)]
)
def test_shipped_texts_are_whole(name, letters, size) -> None:
    made = data.load(name)
    assert len(made.classes) == letters
    assert size < len(made) * 64 / 1000 < size * 1.1


def test_passages_are_of_two_authors_equally_often() -> None:
    made = data.authors()
    assert made.classes == ("Shakespeare", "Melville")
    counts = np.bincount(made.y)
    assert len(made.test) >= 60
    assert counts[0] == counts[1] > 300
    assert made.x[:].max() <= NONE
    assert len(ALPHABET) <= NONE


def test_texts_with_a_class_are_read_from_csv(tmp_path) -> None:
    rows = ['"3","Wall St. Bears","Short-sellers, again"', '"1","World","News\nof the day"'] * 6
    (tmp_path / "news.csv").write_text("\n".join(rows))
    made = data.load(tmp_path / "news.csv")
    assert made.classes == ("1", "3")
    assert made.sample_shape == (1014,)
    assert len(made) + len(made.test) == 12


def test_pairs_have_one_right_translation_and_new_sentences_in_the_test_part() -> None:
    made = data.reversal(200, seed=1)
    assert made.parts == 2
    source, target = made.vocabularies
    meaning: dict[str, str] = {}
    seen = set()
    for part in (made, made.test):
        for x, y in zip(part.x[:], part.y, strict=True):
            said, means = translation.words(x[0], source), translation.words(y, target)
            assert translation.words(x[1], target) == means
            for a, b in zip(said, reversed(means), strict=True):
                assert meaning.setdefault(a, b) == b
            seen.add(tuple(said))
            count = len(means) + 1
            assert y[count - 1] == translation.END
            assert (y[count:] == translation.IGNORED).all()
            assert (x[1, count:] == translation.PAD).all()
            assert x[1, 0] == translation.BEGIN
    assert len(seen) == 200


def test_sentence_pairs_are_read_from_tsv(tmp_path) -> None:
    path = tmp_path / "en-de.tsv"
    path.write_text("a cat\teine Katze\n\na dog\tein Hund\na cat\teine Katze\n" * 5)
    made = data.load(path)
    assert len(made) + len(made.test) == 15
    assert made.vocabularies[0] == (*translation.SPECIAL, "a", "cat", "dog")
    assert translation.words(made.y[0], made.vocabularies[1]) == ["eine", "Katze"]


def test_the_answer_runs_from_the_word_asked_for_to_the_full_stop() -> None:
    made = data.spans(200, 24, seed=3)
    (vocabulary,) = made.vocabularies
    for x, (first, last) in zip(made.x[:], made.y, strict=True):
        said = [vocabulary[t] for t in x[0]]
        assert said[first] == said[1]
        assert said[last + 1] == "."
        assert "." not in said[first : last + 1]
        assert said.count(said[1]) == 2  # asked for once, there once


def article() -> dict:
    context = "The quick brown fox jumps over the lazy dog near Zürich in the early morning hours."
    qas = [
        {"question": "Who jumps?", "answers": [{"text": "quick brown fox", "answer_start": 4}]},
        {"question": "Where is it?", "answers": [{"text": "Zürich", "answer_start": 49}]},
        {"question": "Why?", "answers": [], "is_impossible": True},
    ]
    return {"data": [{"paragraphs": [{"context": context, "qas": qas}]}]}


def test_squad_answers_are_found_among_the_tokens(tmp_path) -> None:
    pytest.importorskip("tokenizers")
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(article()))
    made = questions.squad(path, length=40)
    (vocabulary,) = made.vocabularies
    said = [
        questions.spoken(x[0], int(span[0]), int(span[1]), vocabulary)
        for part in (made, made.test)
        for x, span in zip(part.x[:], part.y, strict=True)
    ]
    assert said == ["quick brown fox", "zurich", "[CLS]"]
    assert made.parts == 3
    assert made.x[0, 1, 0] == 0
    assert made.x[0, 2].sum() < 40


def test_a_long_text_is_read_in_windows_that_overlap(tmp_path) -> None:
    pytest.importorskip("tokenizers")
    whole = article()
    place = whole["data"][0]["paragraphs"][0]
    place["context"] += " and so on" * 30
    (tmp_path / "squad.json").write_text(json.dumps(whole))
    made = questions.squad(tmp_path / "squad.json", length=32)
    assert len(made) > 6
    assert (made.y[1:3] == 0).all()  # later windows do not hold the answer
