"""Checkpoints: resuming is bit-identical wherever it begins; broken files are passed over."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.training import same, sgd, small_data, small_net

import pocketgrad as pg
from pocketgrad.engine import checkpoint
from pocketgrad.train import Callback, EarlyStop

EPOCHS = 3


class KilledError(Exception):
    """Stands for the end of the process."""


class KillAt(Callback):
    """Ends training without any farewell after a number of steps."""

    every = 1

    def __init__(self, step: int) -> None:
        self.at = step

    def on_step(self, trainer, step) -> None:
        if step == self.at:
            raise KilledError


class InterruptAt(KillAt):
    """Presses Ctrl-C after a number of steps."""

    def on_step(self, trainer, step) -> None:
        if step == self.at:
            os.kill(os.getpid(), signal.SIGINT)


def trainer(device: str = "reference", *callbacks: Callback, accumulate: int = 1) -> pg.Trainer:
    return pg.Trainer(
        small_net(0.2),
        optimizer=sgd(),
        device=device,
        schedule=pg.schedule.CosineLR(40),
        accumulate=accumulate,
        callbacks=callbacks,
    )


def fit(made: pg.Trainer, folder: Path | None = None, every_s: float = 0.0):
    data = small_data(100)
    return made.fit(
        data, EPOCHS, 16, data.test, progress=False, checkpoint=folder, checkpoint_every_s=every_s
    )


def all_of(made: pg.Trainer):
    """Weights, optimizer state, counters; and the history without its clock."""
    return made.session.export(), [(e.loss, e.validation_loss) for e in made.history]


def test_training_resumed_after_any_step_ends_the_same(device: str, tmp_path) -> None:
    whole = trainer(device)
    fit(whole)
    for step in (2, 7, 13):
        folder = tmp_path / str(step)
        with pytest.raises(KilledError):
            fit(trainer(device, KillAt(step)), folder)
        again = trainer(device)
        again.resume(folder)
        fit(again, folder)
        assert same(again.session.export(), whole.session.export())
        assert all_of(again)[1] == all_of(whole)[1]


def test_a_checkpoint_once_per_epoch_is_enough_too(tmp_path) -> None:
    whole = trainer(accumulate=2)
    fit(whole)
    with pytest.raises(KilledError):
        fit(trainer("reference", KillAt(6), accumulate=2), tmp_path, every_s=1e9)
    again = trainer(accumulate=2)
    again.resume(tmp_path)
    assert again.progress.position.index == 0
    fit(again, tmp_path, every_s=1e9)
    assert same(again.session.export(), whole.session.export())


def test_ctrl_c_finishes_the_step_saves_and_leaves(tmp_path) -> None:
    whole, stopped = trainer(), trainer("reference", InterruptAt(9))
    fit(whole)
    with pytest.raises(KeyboardInterrupt, match=r"after batch 9; saved in .* resume to go on"):
        fit(stopped, tmp_path, every_s=1e9)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    again = trainer()
    again.resume(tmp_path)
    assert again.progress.batches == 9
    fit(again, tmp_path)
    assert same(again.session.export(), whole.session.export())


def test_ctrl_c_during_validation_is_made_up_for(tmp_path) -> None:
    """The epoch is over but not recorded: resuming validates it first."""
    whole = trainer()
    fit(whole)

    class Source:
        """The test part, with Ctrl-C pressed while its first batch is read."""

        def __iter__(self):
            os.kill(os.getpid(), signal.SIGINT)
            test = small_data(100).test
            yield np.asarray(test.x[:16]), test.y[:16]

    stopped = trainer()
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(small_data(100), EPOCHS, 16, Source(), progress=False, checkpoint=tmp_path)
    assert len(stopped.history) == 0
    again = trainer()
    again.resume(tmp_path)
    fit(again)
    assert same(again.session.export(), whole.session.export())
    assert all_of(again)[1] == all_of(whole)[1]


def test_a_finished_training_resumes_to_nothing_more(tmp_path) -> None:
    done = trainer()
    fit(done, tmp_path)
    again = trainer()
    again.resume(tmp_path)
    history = fit(again, tmp_path)
    assert len(history) == EPOCHS
    assert same(again.session.export(), done.session.export())


def test_a_training_stopped_early_stays_stopped(tmp_path) -> None:
    data = small_data(100)

    def made() -> pg.Trainer:
        return pg.Trainer(
            small_net(), optimizer=sgd(0.0), device="reference", callbacks=[EarlyStop(1, "loss")]
        )

    first = made()
    first.fit(data, 9, 16, progress=False, checkpoint=tmp_path)
    again = made()
    again.resume(tmp_path)
    assert len(again.fit(data, 9, 16, progress=False)) == len(first.history) < 9


def test_a_second_fit_goes_on_and_the_last_two_files_stay(tmp_path) -> None:
    made = trainer()
    fit(made, tmp_path)
    fit(made, tmp_path)
    assert [e.epoch for e in made.history] == list(range(2 * EPOCHS))
    numbers = [checkpoint.number(p) for p in checkpoint.files(tmp_path)]
    assert numbers == [41, 42]


def test_batches_of_ones_own_resume_by_counting(tmp_path) -> None:
    data = small_data(96)
    batches = [(np.asarray(data.x[i : i + 16]), data.y[i : i + 16]) for i in range(0, 96, 16)]
    whole = trainer()
    whole.fit(batches, 2, progress=False)
    with pytest.raises(KilledError):
        trainer("reference", KillAt(8)).fit(
            batches, 2, progress=False, checkpoint=tmp_path, checkpoint_every_s=0
        )
    again = trainer()
    again.resume(tmp_path)
    again.fit(batches, 2, progress=False)
    assert same(again.session.export(), whole.session.export())


def test_a_broken_file_is_passed_over_for_the_one_before(tmp_path, caplog) -> None:
    made = trainer()
    fit(made, tmp_path)
    older, newest = checkpoint.files(tmp_path)
    good = newest.read_bytes()
    middle = bytearray(good)
    middle[-5] ^= 1
    for broken, reason in (
        (b"", "truncated"),
        (good[:7], "truncated"),
        (good[: len(good) // 2], "truncated"),
        (good[:-1], "truncated"),
        (bytes(middle), "corrupt"),
        (b"not at all a checkpoint", "truncated, corrupt"),
    ):
        newest.write_bytes(broken)
        caplog.clear()
        assert trainer().resume(tmp_path) == older
        assert reason in caplog.text
        assert "an older checkpoint is used" in caplog.text
    for number in range(0, len(good), max(1, len(good) // 60)):
        flipped = bytearray(good)
        flipped[number] ^= 0x10
        newest.write_bytes(flipped)
        assert trainer().resume(tmp_path) == older, f"a flipped bit in byte {number} went unseen"


def test_writing_is_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    path = tmp_path / "file"
    checkpoint.write_whole(path, b"old")

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        checkpoint.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_leftovers_of_a_kill_are_removed(tmp_path) -> None:
    leftover = tmp_path / ".checkpoint-000000000003.safetensors.unfinished"
    leftover.write_bytes(b"half")
    checkpoint.save(tmp_path, 4, {"a": np.zeros(2, np.float32)}, {})
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-000000000004.safetensors"]
