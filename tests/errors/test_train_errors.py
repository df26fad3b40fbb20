"""What training refuses, and how it says so: one line with what was asked, found, and to do."""

from __future__ import annotations

import os

import numpy as np
import pytest
from tests.helpers.refusal import refusal
from tests.helpers.training import plain_net, same, sgd, small_data, small_net

import pocketgrad as pg
from pocketgrad.base.errors import (
    CheckpointError,
    DataError,
    DeviceError,
    DtypeError,
    NumericsError,
    SettingError,
    ShapeError,
    UnknownNameError,
)
from pocketgrad.engine import checkpoint
from pocketgrad.train import EarlyStop, KeepBest


def trainer(net=None, device="reference", lr=0.05, **options):
    return pg.Trainer(net or plain_net(), "cross_entropy", sgd(lr), device, **options)


def batch(n: int = 8):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 1, 4, 4)).astype(np.float32), (np.arange(n) % 3).astype(np.int32)


# ---- numbers that go wrong -----------------------------------------------------------------------


def test_a_label_out_of_range_is_found_on_the_device(device: str) -> None:
    x, y = batch()
    bad = y.copy()
    bad[5] = 7
    made = trainer(device=device)
    made.fit([(x, y)], 1, progress=False)
    before = made.session.export()
    text = refusal(lambda: made.fit([(x, y), (x, y), (x, bad), (x, y)], 1, progress=False))
    assert "epoch 1, batch 2 (step 3)" in text
    assert "position 5 of the batch is 7" in text
    assert "3 classes, labels go from 0 to 2" in text
    after = made.session.export()
    assert int(after["session/step"]) == 3, "the bad step was taken back, the good ones were not"
    assert not same(before, after)
    made.step(x, y)  # and training can go on
    assert int(made.session.read_state("step")) == 4


def test_a_negative_label_is_found_in_an_open_loop(device: str) -> None:
    x, y = batch()
    y[0] = -1
    step = pg.compile_step(plain_net(), device=device)
    text = refusal(lambda: step(x, y))
    assert text.startswith("step 0: the label at position 0 of the batch is -1")


def test_a_loss_that_overflows_names_the_first_operation(device: str) -> None:
    x, y = batch()
    made = trainer(device=device)
    made.set_parameter("3.weight", np.full((3, 12), 3e38, np.float32))
    text = refusal(lambda: made.step(x, y), NumericsError)
    assert "step 0: the loss is" in text
    assert "first came from mat_mul in layer '3', with operands float32[8,12] [" in text
    assert "3e+38]" in text
    assert "lower the learning rate" in text
    assert made.lr == pytest.approx(0.05)


def test_state_is_frozen_from_the_fault_on(device: str) -> None:
    x, y = batch()
    wild = x.copy()
    wild[3, 0, 1, 2] = np.inf
    clean, hurt = trainer(small_net(), device), trainer(small_net(), device)
    clean.fit([(x, y)] * 3, 1, progress=False)
    text = refusal(lambda: hurt.fit([(x, y)] * 3 + [(wild, y)] + [(x, y)] * 5, 1, progress=False))
    assert "x holds inf at position 3 of the batch, index (0, 1, 2)" in text
    assert "epoch 0, batch 3 (step 3)" in text
    ours, theirs = clean.session.export(), hurt.session.export()
    for name in ("session/totals",):
        ours.pop(name), theirs.pop(name)
    assert same(ours, theirs)


def test_an_update_that_overflowed_is_told_by_its_parameters() -> None:
    x, y = batch()
    made = trainer(lr=3e38)
    text = refusal(lambda: [made.step(x, y) for _ in range(3)], NumericsError)
    assert "the loss is" in text
    assert "lower the learning rate" in text
    made.set_parameter("1.weight", np.full((12, 16), np.nan, np.float32))
    text = refusal(lambda: made.step(x, y), NumericsError)
    assert "'1.weight' was not finite before the step" in text


def test_a_fault_in_a_micro_batch_is_found() -> None:
    x, y = batch()
    bad = y.copy()
    bad[1] = 3
    made = trainer(accumulate=3)
    text = refusal(
        lambda: made.fit([(x, y), (x, y), (x, y), (x, y), (x, bad), (x, y)], 1, progress=False)
    )
    assert "epoch 0, batch 4 (step 1)" in text
    assert "is 3" in text


# ---- batches -------------------------------------------------------------------------------------


def test_batches_that_do_not_fit_say_what_was_expected() -> None:
    x, y = batch()
    step = pg.compile_step(plain_net(), device="reference")
    step(x, y)
    text = refusal(lambda: step(x[:, :, :3], y), ShapeError)
    assert "expected batches like x float32[8,1,4,4] and y int32[8]" in text
    assert "found x float32[8,1,3,4]" in text
    assert "float64; devices compute in float32: convert with" in refusal(
        lambda: step(x.astype(np.float64), y), DtypeError
    )
    text = refusal(lambda: step(x, y.astype(np.float32)), DtypeError)
    assert "found x float32[8,1,4,4] and y float32[8]" in text
    assert "x has 8 samples but y has shape (7,)" in refusal(lambda: step(x, y[:7]), ShapeError)
    text = refusal(lambda: step(x, y, np.ones(3)), ShapeError)
    assert "weight has shape (3,), expected (8,)" in text
    text = refusal(lambda: step(x, y[:, None]), ShapeError)
    assert "y int32[8,1]" in text


def test_the_first_batch_is_judged_by_the_model() -> None:
    x, y = batch()
    step = pg.compile_step(plain_net(), device="reference")
    text = refusal(lambda: step(x[..., :2], y), ShapeError)
    assert "the model does not take a batch of x float32[8,1,4,2]" in text
    assert "mat_mul in 1" in text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (list, "the source of batches is empty"),
        (lambda: 5, "a int gives no batches"),
        (batch, "wrap them: pg.data.arrays(x, y)"),
        (lambda: [np.zeros(3, np.float32)], "batch 0: it is a ndarray, expected (x, y)"),
    ],
)
def test_a_source_without_batches_is_refused(source, message: str) -> None:
    assert message in refusal(lambda: trainer().fit(source(), 1, progress=False))


def test_a_generator_that_is_used_up_is_told_from_an_empty_list() -> None:
    x, y = batch()
    text = refusal(lambda: trainer().fit(((x, y) for _ in range(2)), 2, progress=False))
    assert "there is no batch in epoch 1" in text
    assert "A generator can be read once only" in text


def test_a_batch_larger_than_the_data_is_refused() -> None:
    text = refusal(lambda: trainer().fit(small_data(20), 1, 64, progress=False))
    assert "batch size 64 is larger than data set 'synthetic' with 20 samples" in text


# ---- settings ------------------------------------------------------------------------------------


def test_unknown_names_come_with_the_nearest_ones() -> None:
    made = trainer()
    for call, message in (
        (lambda: pg.Trainer(plain_net(), "crossentropy"), "did you mean cross_entropy?"),
        (lambda: made.freeze("4.*"), "no parameter is named '4.*'"),
        (lambda: made.activations(batch()[0], "13"), "no layer is named '13'"),
        (lambda: made.set_parameter("1.wieght", np.zeros(3)), "did you mean 1.weight"),
        (lambda: EarlyStop(3, "validation_los"), "did you mean validation_loss"),
        (lambda: KeepBest("x", "acuracy"), "did you mean accuracy"),
        (lambda: pg.Trainer(plain_net(), device="referense"), "did you mean reference"),
    ):
        assert message in refusal(call, UnknownNameError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trainer(seed=-1), "seed -1: choose from 0 to 2^31 - 1"),
        (lambda: trainer(accumulate=0), "accumulate 0"),
        (lambda: trainer().fit(small_data(), -1), "epochs -1"),
        (lambda: trainer().fit(small_data(), 1, 0), "batch size 0"),
        (lambda: setattr(trainer(), "lr", -1.0), "lr -1.0"),
        (lambda: setattr(trainer(), "lr", float("nan")), "lr nan"),
        (lambda: EarlyStop(0), "patience must be 1 or more"),
        (lambda: trainer(pg.nn.Tanh()).plan(8), "cannot be guessed from this model; pass sample="),
        (lambda: trainer().plan(8, sample="cat"), "sample= takes a data set"),
        (lambda: trainer().activations(batch()[0], "0x"), "no layer"),
    ],
)
def test_settings_that_cannot_be_are_refused(call, message: str) -> None:
    with pytest.raises((SettingError, UnknownNameError)) as caught:
        call()
    assert message in str(caught.value)


def test_early_stop_needs_something_to_monitor() -> None:
    made = trainer(callbacks=[EarlyStop()])
    text = refusal(lambda: made.fit(small_data(), 2, 32, progress=False), SettingError)
    assert "there is no validation_loss to monitor; pass validate= to fit()" in text


def test_the_null_device_does_not_pretend_to_train() -> None:
    text = refusal(lambda: trainer(device="null").step(*batch()), DeviceError)
    assert "cannot compute" in text


def test_what_a_step_left_is_not_read_after_an_evaluation() -> None:
    made = trainer()
    assert "before the first training step" in refusal(made.gradients, DeviceError)
    made.step(*batch())
    made.predict(batch()[0])
    assert "read loss and gradients right after the step" in refusal(made.gradients, DeviceError)


# ---- files ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    trainer(small_net()).fit(small_data(), 1, 32, progress=False, checkpoint=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: trainer(plain_net()), "model was (2): BatchNorm1d"),
        (lambda: trainer(small_net(), lr=0.01), "optimizer was SGD(lr=0.05"),
        (lambda: trainer(small_net(), seed=4), "seed was 0, now it is 4"),
        (lambda: trainer(small_net(), accumulate=2), "accumulate was 1, now it is 2"),
        (
            lambda: trainer(small_net(), schedule=pg.schedule.CosineLR(9)),
            "schedule was ConstantLR(value=1.0), now it is CosineLR(steps=9",
        ),
        (
            lambda: pg.Trainer(small_net(), "mse", sgd(), "reference"),
            "loss was cross_entropy, now it is mse",
        ),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(folder, other, message: str) -> None:
    text = refusal(lambda: other().resume(folder), CheckpointError)
    assert message in text
    assert "start anew in another folder" in text


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        (small_data, 16, "data 'batch' was 32, now it is 16"),
        (lambda: small_data(64), 32, "data 'labels_crc' was"),
        (lambda: [batch()], 32, "data 'name' was synthetic, now it is batches"),
    ],
)
def test_other_data_than_the_checkpoints_is_refused(folder, data, size: int, message: str) -> None:
    made = trainer(small_net())
    made.resume(folder)
    text = refusal(lambda: made.fit(data(), 1, size, progress=False), CheckpointError)
    assert message in text


def test_a_folder_with_a_checkpoint_is_not_written_over(folder) -> None:
    text = refusal(
        lambda: trainer(small_net()).fit(small_data(), 1, 32, progress=False, checkpoint=folder),
        CheckpointError,
    )
    assert "holds a checkpoint already (checkpoint-000000000003.safetensors); resume it" in text


def test_a_folder_without_a_checkpoint_cannot_be_resumed(tmp_path) -> None:
    text = refusal(lambda: trainer().resume(tmp_path / "nowhere"), CheckpointError)
    assert "there is no checkpoint in" in text


def test_files_that_are_all_broken_are_listed_with_their_reasons(folder) -> None:
    first, second = checkpoint.files(folder)
    first.write_bytes(first.read_bytes()[:-9])
    second.write_bytes(trainer().save(folder / "w.safetensors").read_bytes())
    text = refusal(lambda: trainer(small_net()).resume(folder), CheckpointError)
    assert "is truncated, corrupt, or not a safetensors file" in text
    assert "is no checkpoint of pocketgrad (its format is 'pt')" in text


@pytest.mark.parametrize(
    ("number", "reason"), [(28, "No space left on device"), (13, "Permission denied")]
)
def test_a_disk_that_refuses_costs_nothing_that_was_saved(
    folder, monkeypatch, number: int, reason: str
) -> None:
    made = trainer(small_net())
    made.resume(folder)
    made.fit(small_data(), 1, 32, progress=False)

    def refuse(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", refuse)
        text = refusal(
            lambda: made.fit(small_data(), 1, 32, progress=False, checkpoint=folder),
            CheckpointError,
        )
        assert reason in text
        assert "checkpoint-000000000003.safetensors is intact" in text
        assert reason in refusal(lambda: made.save(folder / "w"), CheckpointError)
    again = trainer(small_net())
    again.resume(folder)
    assert same(again.parameters(), made.parameters())


def test_a_folder_that_cannot_be_made_is_told_before_training(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    made = trainer()
    text = refusal(
        lambda: made.fit(small_data(), 1, 32, progress=False, checkpoint=tmp_path / "file" / "x"),
        CheckpointError,
    )
    assert "nothing was saved yet" in text
    assert made.progress.batches == 0


def test_weights_that_do_not_fit_are_refused(tmp_path) -> None:
    path = trainer().save(tmp_path / "w.safetensors")
    text = refusal(lambda: trainer(small_net()).load(path), CheckpointError)
    assert "the weights do not fit the model" in text
    text = refusal(lambda: trainer().load(tmp_path / "none"), CheckpointError)
    assert "there is no file of weights" in text
    (tmp_path / "foreign").write_bytes(b"PK\x03\x04 a zip of pickles" * 9)
    text = refusal(lambda: trainer().load(tmp_path / "foreign"), CheckpointError)
    assert "not a safetensors file" in text


def test_data_errors_are_errors_of_data() -> None:
    assert issubclass(DataError, pg.errors.PocketgradError)
