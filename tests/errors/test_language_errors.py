"""What is said of texts, sentence pairs and questions that cannot be used: file and place."""

from __future__ import annotations

import json

import pytest
from tests.helpers.refusal import refusal
from tests.unit.data.test_language import article

from pocketgrad import data
from pocketgrad.data import questions


def bare(whole, *path):
    """The article with one member missing."""
    part = whole
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    return json.dumps(whole)


PLACE = ("data", 0, "paragraphs", 0)
WRONG_START = json.dumps(article()).replace('"answer_start": 4', '"answer_start": 5')


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("a.txt", b"sound\nbut b\xfcrger", "is not UTF-8 text: byte 11 (line 2) is 0xfc"),
        ("a.txt", b"too short", "has 9 characters, too few for two samples of 64"),
        ("a.txt", b"", "has 0 characters"),
        ("a.tsv", b"a b\tc d\nno tab here\n", "line 2: expected a source sentence, a tab"),
        ("a.tsv", b"a\tb\n\tc\n", "line 2: expected a source sentence"),
        ("a.tsv", b"a\tb\n", "has 1 sentence pairs; give at least two"),
        ("a.tsv", b"a\t\xff\n", "byte 2 (line 1) is 0xff"),
        ("a.csv", b"1,text\n2\n", "row 2: 1 columns, expected a class and a text"),
        ("a.csv", b"1,text\n", "has 1 rows; give at least two texts"),
        ("a.json", b'{"data": [', "is not JSON: Expecting value at line 1, column 11"),
        ("a.json", b"[]", "is not a SQuAD file: data should be a list, found nothing"),
        ("a.json", b'{"data": [{}]}', "data[0].paragraphs should be a list, found nothing"),
        (
            "a.json",
            bare(article(), *PLACE, "context").encode(),
            "data[0].paragraphs[0].context should be a str",
        ),
        (
            "a.json",
            bare(article(), *PLACE, "qas", 1, "answers", 0, "answer_start").encode(),
            "data[0].paragraphs[0].qas[1].answers[0].answer_start should be a int, found nothing",
        ),
        (
            "a.json",
            bare(article(), *PLACE, "qas", 2, "is_impossible").encode(),
            "data[0].paragraphs[0].qas[2] has no answer and is not marked is_impossible",
        ),
        ("a.json", WRONG_START.encode(), "says 'quick brown fox' stands at character 5"),
        ("a.json", b'{"data": [\xff]}', "byte 10 (line 1) is 0xff"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_with_its_place(name, body, said, tmp_path) -> None:
    path = tmp_path / name
    path.write_bytes(body)
    message = refusal(lambda: data.load(path))
    assert said in message
    assert str(path) in message


def test_a_vocabulary_that_is_none_is_told(tmp_path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "a.json").write_text(json.dumps(article()))
    for body, said in (
        ("[PAD]\nthe", "'[UNK]' is missing"),
        ("x\n[PAD]\n[UNK]\n[CLS]\n[SEP]", "first"),
    ):
        (tmp_path / "v.txt").write_text(body)
        found = refusal(lambda: questions.squad(tmp_path / "a.json", vocabulary=tmp_path / "v.txt"))
        assert said in found
