"""Callbacks decide from the history; metrics and history are plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.training import plain_net, same, sgd, small_data, small_net

import pocketgrad as pg
from pocketgrad.train import Callback, EarlyStop, Epoch, History, KeepBest, metrics


def epoch(number: int, loss: float, accuracy: float | None = None) -> Epoch:
    return Epoch(number, loss, accuracy, loss, accuracy, 1.0)


def test_training_stops_when_nothing_gets_better() -> None:
    data = small_data()
    stop = EarlyStop(2, "loss")
    made = pg.Trainer(plain_net(), optimizer=sgd(0.0), device="reference", callbacks=[stop])
    history = made.fit(data, 10, 32, progress=False)
    assert 3 <= len(history) < 10
    assert "loss has not improved for" in made.progress.stopped


def test_the_best_weights_are_kept_and_taken_back(tmp_path) -> None:
    """The rate grows until training gets worse, so that the best epoch is not the last."""
    data = small_data(96, 30)
    seen = []

    class Worsen(Callback):
        def on_epoch(self, trainer, epoch) -> None:
            seen.append(trainer.parameters())
            if epoch.epoch >= 2:
                trainer.lr = 30.0

    keep = KeepBest(tmp_path / "best.safetensors")
    made = pg.Trainer(small_net(), optimizer=sgd(), device="reference", callbacks=[Worsen(), keep])
    history = made.fit(data, 6, 32, validate=data.test, progress=False)
    best = history.best("validation_loss")
    assert best is not None
    assert best.epoch < 5
    assert same(made.parameters(), seen[best.epoch])


def test_a_callback_is_called_every_so_many_steps() -> None:
    calls = []

    class Watch(Callback):
        every = 3

        def on_step(self, trainer, step) -> None:
            calls.append((step, trainer.session.loss()))

    made = pg.Trainer(plain_net(), optimizer=sgd(), device="reference", callbacks=[Watch()])
    made.fit(small_data(96), 2, 12, progress=False)
    assert [step for step, _ in calls] == [3, 6, 9, 12, 15]
    assert all(np.isfinite(loss) for _, loss in calls)


def test_the_best_epoch_is_the_first_with_the_best_value() -> None:
    history = History((epoch(0, 2.0, 0.5), epoch(1, 1.0, 0.7), epoch(2, float("nan"), 0.7)))
    best_loss, best_accuracy = history.best("loss"), history.best("validation_accuracy")
    assert best_loss is not None
    assert best_accuracy is not None
    assert (best_loss.epoch, best_accuracy.epoch) == (1, 1)
    assert History().best("loss") is None
    assert History.from_json(History((epoch(0, 1.0),)).to_json()) == History((epoch(0, 1.0),))


def test_metrics_agree_with_counting_by_hand() -> None:
    scores = np.array([[3, 1, 2], [0, 5, 1], [1, 2, 0], [9, 1, 1.0]])
    labels = np.array([0, 1, 0, 2])
    assert metrics.accuracy(scores, labels) == 0.5
    assert metrics.top_k_accuracy(scores, labels, 2) == 0.75
    np.testing.assert_array_equal(
        metrics.confusion_matrix(scores, labels), [[1, 1, 0], [0, 1, 0], [1, 0, 0]]
    )
    f1 = (2 * 1 / (2 + 2) + 2 * 1 / (2 + 1) + 0) / 3
    assert metrics.macro_f1(scores, labels) == pytest.approx(f1)
    assert metrics.mean_absolute_error(np.array([1.0, 3.0]), np.array([2.0, 1.0])) == 1.5
