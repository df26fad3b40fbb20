"""`pocketgrad train`: results, errors, interruption, resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from tests.helpers.training import small_data

import pocketgrad as pg
from pocketgrad.cli.__main__ import main
from pocketgrad.engine import checkpoint

KEYS = {
    "batch", "bytes_per_step", "data", "device", "epochs", "flops_per_step", "launches", "lr",
    "model", "optimizer", "peak_bytes", "samples", "samples_per_s", "schedule", "seed", "steps",
    "test_accuracy", "test_loss", "train_accuracy", "train_loss", "train_s", "why",
}  # fmt: skip


@pytest.fixture
def data_path(tmp_path):
    """Images the feed-forward model takes, as a file."""
    data = pg.data.synthetic(96, (1, 28, 28), 3, test=24)
    path = tmp_path / "small.npz"
    held = data.test
    np.savez(path, x=data.x[:], y=data.y, x_test=held.x[:], y_test=held.y)
    return str(path)


def arguments(data: str, *more: str) -> list[str]:
    head = ["train", "--model", "mlp-784-256-128-16", "--device", "reference", "--epochs", "2"]
    return [*head, "--batch", "32", "--data", data, *more]


def test_results_are_one_json_object(data_path: str, capsys) -> None:
    assert main(arguments(data_path, "--json")) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert set(found) == KEYS
    assert 0 <= found["test_accuracy"] <= 1
    assert found["epochs"] == 2
    assert found["steps"] == 6
    # x, y and a weight that changes for no batch: 96 is three times 32; two reads a poll.
    assert 32 * 784 + 32 * 4 <= found["bytes_per_step"] < 32 * 784 + 32 * 4 + 128
    assert found["peak_bytes"] > 3 * 4 * 235_000
    assert "epoch 2: loss" in err


def test_results_are_a_table_for_people(data_path: str, capsys, tmp_path) -> None:
    weights = tmp_path / "net.safetensors"
    assert main(arguments(data_path, "--save", str(weights))) == 0
    out = capsys.readouterr().out
    for word in ("device", "test accuracy", "samples/s", "peak memory", "moved per step"):
        assert word in out
    assert weights.exists()


@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop"])
def test_every_optimizer_has_a_rate_that_learns(name: str, data_path: str, capsys) -> None:
    assert main(arguments(data_path, "--json", "--optimizer", name, "--schedule", "constant")) == 0
    assert json.loads(capsys.readouterr().out)["test_accuracy"] > 0.4


def test_training_in_two_parts_ends_like_one(data_path: str, capsys, tmp_path) -> None:
    whole, parts = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors"
    run = ["--checkpoint", str(tmp_path / "run")]
    assert main(arguments(data_path, "--save", str(whole))) == 0
    assert main(arguments(data_path, *run, "--resume")) == 0
    assert "training begins" in capsys.readouterr().err
    last = checkpoint.files(tmp_path / "run")[-1]
    last.unlink()  # as if killed before the second epoch's was written
    assert main(arguments(data_path, *run, "--resume", "--save", str(parts))) == 0
    assert "after 3 batches" in capsys.readouterr().err
    assert whole.read_bytes() == parts.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--model", "lenet-5"], "did you mean lenet5"),
        (["--data", "fashion_mnst"], "did you mean fashion_mnist"),
        (["--device", "referense"], "did you mean reference"),
        (["--optimizer", "adm"], "did you mean adam"),
        (["--schedule", "cosin"], "did you mean cosine"),
        (["--epochs", "0"], "--epochs 0: choose 1 or more"),
        (["--batch", "0"], "--batch 0: choose 1 or more"),
        (["--batch", "1000"], "batch size 1000 is larger than data set"),
        (["--lr", "-1"], "lr must be ≥ 0"),
        (["--lr", "much"], "invalid float value: 'much'"),
        (["--seed", "-3"], "seed -3"),
        (["--resume"], "--resume needs --checkpoint"),
        (["--data", "/no/such/folder"], "no data at '/no/such/folder'"),
        (["--model", "model1"], "model 'model1' does not take the samples of data set 'small'"),
        (["--lr", "1e30"], "the loss is"),
        (["--checkpoint", "/dev/null/x"], "cannot"),
    ],
)
def test_every_mistake_is_one_line(change: list[str], message: str, data_path: str, capsys) -> None:
    assert main(arguments(data_path, *change)) == 2
    errors = [ln for ln in capsys.readouterr().err.splitlines() if ln.startswith("error: ")]
    assert len(errors) == 1
    assert message in errors[0]


def test_mistakes_are_json_when_asked_for(data_path: str, capsys) -> None:
    assert main(arguments(data_path, "--model", "lenet", "--json")) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["type"] == "UnknownNameError"
    assert "lenet5" in error["message"]


def test_data_without_a_test_part_keeps_some_back(tmp_path, capsys) -> None:
    data = small_data(50)
    np.savez(tmp_path / "d.npz", x=np.zeros((50, 28, 28), np.uint8), y=data.y)
    assert main(arguments(str(tmp_path / "d.npz"), "--json")) == 0
    out, err = capsys.readouterr()
    assert "5 of its samples are kept back" in err
    assert json.loads(out)["test_accuracy"] is not None


def test_an_empty_data_set_is_refused(tmp_path, capsys) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((0, 28, 28), np.uint8), y=np.zeros(0, np.int32))
    assert main(arguments(str(tmp_path / "d.npz"))) == 2
    assert "is empty" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_saves_and_leaves_with_130(tmp_path) -> None:
    data = pg.data.synthetic(2000, (1, 28, 28), 3, test=24)
    held = data.test
    np.savez(tmp_path / "d.npz", x=data.x[:], y=data.y, x_test=held.x[:], y_test=held.y)
    folder = tmp_path / "run"
    command = arguments(str(tmp_path / "d.npz"), "--epochs", "500", "--checkpoint", str(folder))
    with subprocess.Popen(
        [sys.executable, "-m", "pocketgrad.cli", *command, "--checkpoint-every", "0"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=dict(os.environ),
    ) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("epoch 1"):
                child.send_signal(signal.SIGINT)
                break
        rest = child.stderr.read()
        assert child.wait(60) == 130
    assert "interrupted after batch" in rest
    assert "resume to go on" in rest
    assert "Traceback" not in rest
    assert checkpoint.latest(folder).about["batches"] >= 63
