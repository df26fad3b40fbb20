"""Layers: what PyTorch cannot be asked about. Dropout's masks, and settings that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.describe import outcome

from pocketgrad import nn
from pocketgrad.base.dtypes import int32
from pocketgrad.base.errors import DtypeError, SettingError, ShapeError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType
from pocketgrad.ops.tensor import Tensor

ONES = np.ones((50, 40), np.float32)
IMAGE = np.ones((2, 6, 5, 5), np.float32)


def test_dropout_keeps_the_mean_and_uses_one_mask_in_both_directions():
    got = outcome(nn.Dropout(0.25), ONES)
    kept = got.outputs[0] != 0
    assert kept.mean() == pytest.approx(0.75, abs=0.03)
    np.testing.assert_allclose(got.outputs[0][kept], 4 / 3)
    want = np.where(kept, got.directions[0] * 4 / 3, 0.0)
    np.testing.assert_allclose(got.gradients["input0"], want)


def test_each_use_of_dropout_has_its_own_mask():
    layer = nn.Dropout(0.5)
    first, second = outcome(layer, ONES, call=lambda x: (layer(x), layer(x))).outputs
    assert not np.array_equal(first, second)


def test_dropout_of_everything_and_of_nothing():
    assert not outcome(nn.Dropout(1.0), ONES).outputs[0].any()
    assert outcome(nn.Dropout(0.5), ONES, training=False).outputs[0].all()
    frozen = nn.Sequential(nn.Dropout(0.5))
    frozen[0].eval()
    assert outcome(frozen, ONES).outputs[0].all()


def test_dropout_between_recurrent_layers_and_in_attention_works_in_training_only():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3, 6)).astype(np.float32)
    for layer, inputs in (
        (nn.LSTM(6, 5, 2, dropout=0.5), [x]),
        (nn.MultiheadAttention(6, 2, dropout=0.5), [x] * 3),
    ):
        trained = outcome(layer, *inputs).outputs[0]
        used = outcome(layer, *inputs, training=False).outputs[0]
        assert np.array_equal(used, outcome(layer, *inputs, training=False).outputs[0])
        assert not np.array_equal(trained, used)


def test_a_causal_query_sees_nothing_later():
    layer = nn.MultiheadAttention(6, 2, batch_first=True)
    x = np.random.default_rng(0).standard_normal((1, 5, 6)).astype(np.float32)
    later = x.copy()
    later[:, 3:] += 1

    def run(array):
        return outcome(layer, array, call=lambda v: layer(v, v, v, is_causal=True)).outputs[0]

    assert np.array_equal(run(x)[:, :3], run(later)[:, :3])
    assert not np.allclose(run(x)[:, 3:], run(later)[:, 3:])


def test_the_padding_row_of_an_embedding_is_not_trained():
    index = np.array([[0, 2], [2, 1]])
    got = outcome(nn.Embedding(3, 4, padding_idx=2), index)
    assert not got.gradients["weight"][2].any()
    assert got.gradients["weight"][:2].all()


def test_samples_of_weight_zero_do_not_count():
    loss = nn.CrossEntropyLoss()
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((5, 3)).astype(np.float32), rng.integers(0, 3, 5)
    weight = np.array([1, 1, 1, 0, 0], np.float32)
    part = outcome(loss, logits[:3], labels[:3]).outputs[0]
    whole = outcome(loss, logits, labels, weight).outputs[0]
    np.testing.assert_allclose(whole, part)


def test_a_loss_may_be_called_without_a_trace():
    with Builder(Tensor) as builder:
        x, y = (builder.input(TensorType((4, 3)), n) for n in "xy")
        assert nn.MSELoss()(x, y).shape == ()
        labels = builder.input(TensorType((4,), int32), "labels")
        assert nn.CrossEntropyLoss([1, 2, 3])(x, labels).shape == ()


def test_batch_norm_in_use_leaves_its_statistics():
    layer = nn.BatchNorm2d(6)
    assert not outcome(layer, IMAGE, training=False).updates
    assert set(outcome(layer, IMAGE).updates) == {
        "running_mean", "running_var", "num_batches_tracked",
    }  # fmt: skip


MISTAKES = [
    (lambda: nn.Conv2d(6, 4, 3, groups=4), SettingError, "groups=4 must divide the channels 6 in"),
    (lambda: nn.Conv2d(6, 4, 3, stride=2, padding="same"), SettingError, "needs stride 1"),
    (lambda: nn.Dropout(1.5), SettingError, "p is a probability, got 1.5"),
    (lambda: nn.GroupNorm(4, 6), SettingError, "4 groups do not divide 6"),
    (lambda: nn.MultiheadAttention(7, 2), SettingError, "2 heads do not divide embed_dim 7"),
    (lambda: nn.LSTM(3, 4, 0), SettingError, "num_layers and hidden_size of at least 1"),
    (nn.Upsample, SettingError, "either size or scale_factor"),
    (lambda: nn.Upsample(4, mode="bicubic"), SettingError, "'nearest' or 'bilinear'"),
    (lambda: nn.Upsample(4, align_corners=True), SettingError, "needs mode='bilinear'"),
    (lambda: nn.MSELoss("average"), SettingError, "reduction is one of mean, sum, none"),
    (lambda: nn.CrossEntropyLoss([1, 2], label_smoothing=0.1), SettingError, "not both"),
    (lambda: nn.BCEWithLogitsLoss(pos_weight=[[1]]), SettingError, "one number per class"),
    (lambda: nn.Sequential().add_module("a.b", nn.ReLU()), SettingError, "hold a dot"),
    (nn.Parameter, SettingError, "either an array, or shape= and init="),
    (lambda: nn.Sequential(nn.ReLU())[1], IndexError, "has 1 parts, there is no 1"),
    (lambda: nn.Module().update_buffer("x", None), SettingError, "no buffer 'x'"),  # type: ignore[arg-type]  # never reached
]


@pytest.mark.parametrize(("make", "error", "message"), MISTAKES, ids=[m for *_, m in MISTAKES])
def test_a_setting_that_makes_no_sense_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


WRONG_INPUTS = [
    (nn.BatchNorm2d(5), IMAGE, ShapeError, r"BatchNorm2d takes 4 axes with 5 channels second"),
    (nn.BatchNorm1d(6), IMAGE, ShapeError, r"takes 2 or 3 axes"),
    (nn.LSTM(3, 4), IMAGE, ShapeError, r"LSTM takes \[steps, batch, 3\]"),
    (nn.Upsample(scale_factor=1.5), IMAGE, SettingError, r"gives 7\.5 × 7\.5; give a size"),
    (nn.Linear(3, 4), IMAGE, ShapeError, r"inner sizes 5 and 3"),
    (nn.Embedding(3, 4), IMAGE, DtypeError, r"index"),
]


@pytest.mark.parametrize(("layer", "x", "error", "message"), WRONG_INPUTS)
def test_an_input_that_does_not_fit_is_refused(layer, x, error, message):
    with pytest.raises(error, match=message):
        outcome(layer, x)


def test_attention_refuses_what_it_does_not_do():
    layer = nn.MultiheadAttention(6, 2)
    x = np.ones((3, 2, 6), np.float32)
    with pytest.raises(SettingError, match="shares are not kept"):
        outcome(layer, x, call=lambda v: layer(v, v, v, need_weights=True))
    padding = np.zeros((2, 3), np.float32)
    with pytest.raises(DtypeError, match="both masks must be bool"):
        outcome(layer, x, padding, call=lambda v, m: layer(v, v, v, key_padding_mask=m))
    with pytest.raises(ShapeError, match=r"takes \[steps, batch, size\]"):
        outcome(layer, x[0], call=lambda v: layer(v, v, v))
    state = np.ones((1, 1, 1), np.float32)
    lstm = nn.LSTM(6, 4)
    with pytest.raises(ShapeError, match=r"first state must have shape \(1, 2, 4\)"):
        outcome(lstm, x, state, call=lambda v, s: lstm(v, (s, s)))
