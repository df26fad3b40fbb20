"""`pocketgrad train` on every kind of model: it trains, measures, resumes, shows and predicts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.unit.data.test_language import article

import pocketgrad as pg
from pocketgrad import tasks, zoo
from pocketgrad.cli.__main__ import main
from pocketgrad.data.png import read_png
from pocketgrad.tasks.generate import png


@pytest.fixture(autouse=True)
def short_lives(monkeypatch) -> None:
    monkeypatch.setattr("pocketgrad.tasks.act.UPDATES", 20)
    monkeypatch.setattr("pocketgrad.tasks.act.EPISODES", 4)
    monkeypatch.setattr("pocketgrad.tasks.act.NUMBERS", {"warm": 64, "explore_over": 20})
    monkeypatch.setattr("pocketgrad.tasks.proceed.SHOWN", 5)
    monkeypatch.setattr("pocketgrad.data.characters.STEPS", 10)


def files(folder: Path) -> dict[str, str]:
    """Small data of every kind."""
    (folder / "t.txt").write_text("abracadabra " * 60)
    made = pg.data.reversal(60, seed=2)
    read, said = made.vocabularies
    lines = []
    for x in made.x[:]:
        source, target = ([w for w in row if w > 3] for row in x)
        lines.append(
            " ".join(read[w] for w in source) + "\t" + " ".join(said[w] for w in target) + "\n"
        )
    (folder / "t.tsv").write_text("".join(lines))
    whole = article()
    whole["data"] *= 4
    (folder / "t.json").write_text(json.dumps(whole))
    images = pg.data.synthetic(24, (1, 8, 8), 2, test=8)
    np.savez(
        folder / "t.npz", x=images.x[:], y=images.y, x_test=images.test.x[:], y_test=images.test.y
    )
    (folder / "t.csv").write_text("".join(f'{i % 2},"some text {i}"\n' for i in range(20)))
    return {p.suffix[1:]: str(p) for p in folder.iterdir()}


# model, kind of data, width, what is measured beside loss and accuracy
CASES = {
    "continue": ("char-lstm", "txt", "0.03", {"bits_per_character"}),
    "convolve": ("char-cnn-lstm", "txt", "0.05", {"bits_per_character"}),
    "translate": ("seq2seq", "tsv", "0.03", {"exact"}),
    "answer": ("bert-tiny", "json", "0.125", {"exact", "f1"}),
    "generate": ("dcgan-generator", "npz", "0.05", set()),
    "act": ("dqn-vector", "grid", "0.1", {"mean_return", "solved_at", "training_episodes"}),
    "classify": ("char-cnn", "csv", "0.03", set()),
}


def arguments(case: str, known: dict[str, str], *more: str) -> list[str]:
    model, kind, width, _ = CASES[case]
    head = ["train", "--model", model, "--data", known.get(kind, kind), "--width", width]
    return [*head, "--device", "reference", "--batch", "8", "--epochs", "1", *more]


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_model_trains_and_is_measured(case, tmp_path, capsys) -> None:
    if case == "answer":
        pytest.importorskip("tokenizers")
    known = files(tmp_path)
    weights, picture = tmp_path / "net.safetensors", tmp_path / "made.png"
    shown = ["--picture", str(picture)] if case == "generate" else []
    assert main(arguments(case, known, "--save", str(weights), "--json", *shown)) == 0
    found = json.loads(capsys.readouterr().out)
    assert np.isfinite(found["train_loss"])
    assert CASES[case][3] <= set(found)
    assert bool(found["samples"]) == (case not in ("act", "classify"))
    if shown:
        assert read_png(picture).shape == (1, 64, 64)

    assert main(arguments(case, known, "--weights", str(weights), "--eval", "--json")) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["epochs"] == again["steps"] == 0
    for key in ("test_loss", "test_accuracy", "exact", "mean_return"):
        if found.get(key) is not None:
            assert again[key] == pytest.approx(found[key], rel=1e-5), key
    assert main(arguments(case, known, "--weights", str(weights), "--eval")) == 0
    assert "test loss" in capsys.readouterr().out


@pytest.mark.parametrize("case", ["translate", "generate"])
def test_training_in_two_parts_ends_like_one(case, tmp_path) -> None:
    known = files(tmp_path)
    ends = [tmp_path / "whole.safetensors", tmp_path / "parts.safetensors"]
    run = ["--epochs", "2", "--checkpoint", str(tmp_path / "run"), "--resume"]
    assert main(arguments(case, known, "--epochs", "2", "--save", str(ends[0]))) == 0
    assert main(arguments(case, known, *run)) == 0
    max((tmp_path / "run").glob("*")).unlink()  # as if killed before the last was written
    assert main(arguments(case, known, *run, "--save", str(ends[1]))) == 0
    assert ends[0].read_bytes() == ends[1].read_bytes()


def predicted(case: str, body: str, folder: Path, capsys) -> list[str]:
    known = files(folder)
    (folder / "asked").write_text(body)
    assert main(arguments(case, known, "--json", "--predict", str(folder / "asked"))) == 0
    found: list[str] = json.loads(capsys.readouterr().out)["predictions"]
    return found


def test_a_text_is_continued(tmp_path, capsys) -> None:
    lines = predicted("continue", "abra\nca\n", tmp_path, capsys)
    assert [line[:n] for line, n in zip(lines, (4, 2), strict=True)] == ["abra", "ca"]
    assert [len(line) for line in lines] == [9, 7]


def test_a_sentence_is_translated(tmp_path, capsys) -> None:
    (line,) = predicted("translate", "a b zz\n", tmp_path, capsys)
    assert line.startswith("a b <unk> → ")


def test_a_question_is_answered(tmp_path, capsys) -> None:
    pytest.importorskip("tokenizers")
    (line,) = predicted("answer", "who jumps\tthe quick fox\n", tmp_path, capsys)
    assert line.startswith("who jumps | the quick fox → ")


def test_a_text_is_classified(tmp_path, capsys) -> None:
    lines = predicted("classify", "some text\nanother\n", tmp_path, capsys)
    assert [line.split(":")[0] for line in lines] == ["some text", "another"]


def test_an_image_is_classified_and_one_of_another_mode_refused(tmp_path, capsys) -> None:
    def ask(pixels) -> int:
        (tmp_path / "i.png").write_bytes(png(pixels))
        data = pg.data.synthetic(24, (1, 28, 28), 2, test=8)
        np.savez(tmp_path / "d.npz", x=data.x[:], y=data.y, x_test=data.x[:8], y_test=data.y[:8])
        head = ["train", "--model", "mlp-784-256-128-16", "--data", str(tmp_path / "d.npz")]
        more = ["--device", "reference", "--epochs", "1", "--batch", "8", "--json"]
        return main([*head, *more, "--predict", str(tmp_path / "i.png")])

    assert ask(np.zeros((1, 28, 28), np.uint8)) == 0
    assert json.loads(capsys.readouterr().out)["predictions"][0].startswith("i.png: ")
    assert ask(np.zeros((3, 28, 28), np.uint8)) == 2
    said = json.loads(capsys.readouterr().out)["error"]["message"]
    assert "i.png' is an image of 28 × 28 pixels, colour (RGB); the model was trained on" in said
    assert "grey: convert or resize it" in said


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        ("continue", ["--data", "reversal"], "expected a text: shakespeare, moby_dick, or a .txt"),
        ("translate", ["--data", "spans"], "in 3 parts, expected sentence pairs"),
        ("answer", ["--data", "embedded"], "in 1 part, expected questions about texts"),
        ("generate", ["--data", "spans"], "expected images"),
        ("generate", ["--picture", "a.jpg"], "pictures are written as .png"),
        ("act", ["--data", "embedded"], "is no environment; a model that acts takes one of"),
        ("act", ["--predict", "x"], "is judged by its returns"),
        ("act", ["--model", "dqn"], "take dqn-vector"),
        ("continue", ["--picture", "a.png"], "only models that generate images write one"),
        ("continue", ["--eval"], "give --weights FILE, or --resume"),
        ("continue", ["--width", "0"], "--width 0.0: choose a number above 0"),
        ("continue", ["--augment", "flip"], "only images [N, C, H, W]"),
        ("continue", ["--augment", "flop"], "is no augmentation"),
        ("continue", ["--eval", "--resume", "--checkpoint", "/no/such"], "no checkpoint"),
    ],
)
def test_what_does_not_go_together_is_one_line(case, change, message, tmp_path, capsys) -> None:
    kind = CASES[case][1]
    known = {kind: "spans"} if kind == "json" else files(tmp_path)
    assert main(arguments(case, known, *change)) == 2
    errors = [ln for ln in capsys.readouterr().err.splitlines() if ln.startswith("error: ")]
    assert len(errors) == 1
    assert message in errors[0]


def test_every_model_has_a_task_and_every_task_a_model() -> None:
    found = {zoo.card(name).task for name in zoo.MODELS}
    assert found == set(tasks.ALL)
