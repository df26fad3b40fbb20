"""What is shown of training: a line per epoch in a log, a bar on a terminal, or nothing."""

from __future__ import annotations

import sys

import pytest
from tests.helpers.training import plain_net, sgd, small_data

from pocketgrad.train import Epoch, Trainer
from pocketgrad.train.progress import Lines, Live, Silent, display, line
from pocketgrad.train.session import Totals

EPOCH = Epoch(1, 0.5, 0.75, 0.6, 0.7, 1234.5)


def test_a_log_gets_a_line_per_epoch(capsys) -> None:
    data = small_data()
    made = Trainer(plain_net(), optimizer=sgd(), device="reference")
    made.fit(data, 2, 32, validate=data.test)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "training on reference (NumPy)"
    assert len(lines) == 3
    assert lines[2].startswith("epoch 2: loss ")


def test_an_epoch_is_told_with_what_was_measured() -> None:
    assert line(EPOCH) == (
        "epoch 2: loss 0.5000, accuracy 0.7500, validation loss 0.6000, accuracy 0.7000, "
        "1,234 samples/s"
    )
    assert line(Epoch(0, 0.5, None, None, None, 10.0)) == "epoch 1: loss 0.5000, 10 samples/s"


def test_a_terminal_gets_a_bar(capsys) -> None:
    live = Live()
    live.begin("training on a device", 2, 10)
    live.advance(0, 5, Totals(8.0, 16.0, 4.0), 1234.0)
    live.epoch(EPOCH)
    live.end()
    out, err = capsys.readouterr()
    assert out == ""
    assert "training on a device" in err
    assert "epoch 1/2" in err
    assert "loss 0.5000  accuracy 0.2500  1,234 samples/s" in err


def test_what_is_shown_depends_on_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(display(False), Silent)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert isinstance(display(True), Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(display(True), Live)
