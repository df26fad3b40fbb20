"""Trainer: training, measuring, predicting, and arrays that can be read and set."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.training import Counting, plain_net, same, sgd, small_data, small_net

import pocketgrad as pg
from pocketgrad.data import Loader
from pocketgrad.train.step import Stored

ROUNDING = 1e-5  # of sums of a few hundred float32 products


def trainer(net=None, device="reference", **options):
    return pg.Trainer(net or plain_net(), "cross_entropy", sgd(), device, **options)


def scaled(data):
    return np.asarray(data.x[:], np.float32) / 255


def test_training_learns_and_the_history_tells(device: str) -> None:
    data = small_data(400)
    made = trainer(small_net(), device)
    history = made.fit(data, 6, 32, validate=data.test, progress=False)
    assert [e.epoch for e in history] == list(range(6))
    assert history[-1].loss < history[0].loss / 2
    assert history[-1].validation_accuracy > 0.6
    assert history[-1].samples_per_s > 0
    assert history == made.history


def test_the_same_seed_gives_the_same_bits_and_another_does_not(device: str) -> None:
    def weights(seed: int):
        made = trainer(small_net(0.3), device, seed=seed)
        made.fit(small_data(), 2, 16, progress=False)
        return made.parameters()

    assert same(weights(1), weights(1))
    assert not same(weights(1), weights(2))


def test_evaluation_leaves_no_trace_in_training() -> None:
    data = small_data()
    quiet, watched = trainer(small_net()), trainer(small_net())
    quiet.fit(data, 2, 32, progress=False)
    history = watched.fit(data, 2, 32, validate=data.test, progress=False)
    assert same(quiet.parameters(), watched.parameters())
    assert quiet.history[1].loss == history[1].loss


def test_the_last_short_batch_counts_exactly(device: str) -> None:
    """80 samples in batches of 64 with filling: the same as 64 and 16 without any."""
    data = small_data(80)
    filled, exact = trainer(device=device), trainer(device=device)
    loader = Loader(data, 64, seed=0)
    batches = [loader.batch_at(0, i) for i in range(2)]
    exact.stored = Stored.of(data)
    losses = [exact.step(b.x[: b.count], b.y[: b.count]) for b in batches]
    history = filled.fit(data, 1, 64, progress=False)
    assert history[0].loss == pytest.approx((losses[0] * 64 + losses[1] * 16) / 80, rel=ROUNDING)
    for name, array in exact.parameters().items():
        np.testing.assert_allclose(filled.parameters()[name], array, rtol=1e-4, atol=1e-6)


def test_batches_of_ones_own_are_filled_up_to_the_first() -> None:
    data = small_data(80)
    rows = [slice(0, 64), slice(64, 80)]
    x = scaled(data)
    given = trainer()
    given.fit([(x[r], data.y[r]) for r in rows], 1, progress=False)
    exact = trainer()
    for r in rows:
        exact.step(x[r], data.y[r])
    for name, array in exact.parameters().items():
        np.testing.assert_allclose(given.parameters()[name], array, rtol=1e-4, atol=1e-6)


def test_accumulated_micro_batches_equal_one_big_batch(device: str) -> None:
    data = small_data(96)
    x, y = scaled(data), data.y
    whole, parts = trainer(device=device), trainer(device=device, accumulate=3)
    for _ in range(4):
        whole.step(x, y)
        for i in range(3):
            parts.step(x[32 * i : 32 * i + 32], y[32 * i : 32 * i + 32])
    assert int(parts.session.read_state("step")) == 4
    for name, array in whole.parameters().items():
        np.testing.assert_allclose(parts.parameters()[name], array, rtol=1e-4, atol=1e-6)
    for name, array in whole.gradients().items():
        np.testing.assert_allclose(parts.gradients()[name], array, rtol=1e-3, atol=1e-6)


def test_gradients_are_clipped_to_a_common_norm() -> None:
    data = small_data(32)
    made = pg.Trainer(plain_net(), optimizer=pg.optim.SGD(1.0, clip_norm=0.01), device="reference")
    before = made.parameters()
    made.step(data.x, data.y)
    moved = [made.parameters()[n] - a for n, a in before.items()]
    assert np.sqrt(sum((m**2).sum() for m in moved)) == pytest.approx(0.01, rel=1e-3)


def test_a_schedule_scales_the_rate_that_can_be_set_at_run_time() -> None:
    data = small_data(32)
    made = trainer(schedule=pg.schedule.StepLR(1, 0.5))
    made.step(data.x, data.y)
    plans = len(made.session._plans)
    made.lr = 0.0
    before = made.parameters()
    made.step(data.x, data.y)
    assert made.lr == 0.0
    assert same(before, made.parameters())
    assert len(made.session._plans) == plans


def test_frozen_layers_stay_and_the_others_keep_their_state() -> None:
    data = small_data()
    made = trainer(small_net())
    made.fit(data, 1, 32, progress=False)
    momentum = made.session.export()["momentum_buffer/4.weight"]
    first = made.parameters()
    assert made.freeze("1.*") == ["1.weight", "1.bias"]
    assert same(first, made.parameters())
    np.testing.assert_array_equal(made.session.export()["momentum_buffer/4.weight"], momentum)
    made.fit(data, 1, 32, progress=False)
    after = made.parameters()
    assert same({"w": first["1.weight"]}, {"w": after["1.weight"]})
    assert not same({"w": first["4.weight"]}, {"w": after["4.weight"]})
    assert "1.weight" not in made.gradients()
    made.unfreeze("*")
    made.fit(data, 1, 32, progress=False)
    assert not same({"w": after["1.weight"]}, {"w": made.parameters()["1.weight"]})


def test_any_number_of_samples_can_be_predicted(device: str) -> None:
    data = small_data(70)
    made = trainer(small_net(), device)
    made.fit(data, 1, 32, progress=False)
    whole = made.predict(data.x)
    assert whole.shape == (70, 3)
    np.testing.assert_allclose(made.predict(data.x[:1]), whole[:1], rtol=1e-5, atol=1e-6)
    scored = made.evaluate(data, metrics={"accuracy": pg.train.metrics.accuracy})
    assert scored.accuracy == pytest.approx(scored.metrics["accuracy"])
    assert scored.samples == 70


def test_activations_and_parameters_are_arrays_that_fit_together() -> None:
    data = small_data(8)
    made = trainer(plain_net())
    made.stored = Stored.of(data)
    seen = made.activations(data.x, ["1", "2", "3"])
    p = made.parameters()
    np.testing.assert_allclose(np.tanh(seen["1"]), seen["2"], rtol=1e-6)
    np.testing.assert_allclose(seen["2"] @ p["3.weight"].T + p["3.bias"], seen["3"], rtol=1e-4)
    made.set_parameter("3.weight", np.zeros_like(p["3.weight"]))
    expected = np.tile(p["3.bias"], (8, 1))
    np.testing.assert_array_equal(made.activations(data.x, "3")["3"], expected)


def test_gradients_are_those_of_the_loss() -> None:
    data = small_data(32)
    made = trainer(plain_net())
    x = scaled(data)
    p = made.parameters()
    made.step(x, data.y)
    bias = made.gradients()["3.bias"]
    hidden = np.tanh(x.reshape(32, -1) @ p["1.weight"].T + p["1.bias"])
    scores = hidden @ p["3.weight"].T + p["3.bias"]
    share = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    share[np.arange(32), data.y] -= 1
    np.testing.assert_allclose(bias, share.mean(axis=0), rtol=1e-4, atol=1e-6)


def test_a_plan_states_exactly_what_is_allocated(device: str) -> None:
    data = small_data()
    backend = Counting(device)
    made = trainer(small_net(), backend)
    summary = made.plan(32, data)
    made.fit(data, 1, 32, validate=data.test, progress=False)
    assert backend.allocated_nbytes == summary.peak_nbytes == made.session.allocated_nbytes
    by_kind = summary.peak_by_kind
    elements = sum(a.size for a in made.parameters().values())
    held = sum(a.nbytes for a in made.buffers().values())
    assert by_kind["parameters"] == 4 * elements + held
    assert by_kind["gradients"] == 4 * elements
    assert by_kind["input"] == 32 * 16 + 32 * 4 + 32 * 4
    executable = made.session.executable("train", next(iter(made.session._plans))[1])
    assert summary.launch_count == executable.bound.launches


def test_a_plan_with_accumulation_states_what_is_allocated() -> None:
    data = small_data()
    backend = Counting("reference")
    made = trainer(small_net(), backend, accumulate=3)
    summary = made.plan(32, data)
    made.fit(data, 1, 32, progress=False)
    assert backend.allocated_nbytes == summary.peak_nbytes


def test_a_step_moves_the_batch_and_nothing_else(device: str) -> None:
    data = small_data(96)
    made = trainer(device=device)
    made.fit(data, 1, 32, progress=False)
    made.session.traffic.update(uploaded=0, downloaded=0)
    inputs = next(iter(made.session._bound))[1]
    batch = Loader(data, 32).batch_at(0, 0)
    for _ in range(3):
        made.session.train(inputs, batch.x, batch.y, batch.weight)
    assert made.session.traffic == {"uploaded": 3 * (32 * 16 + 32 * 4), "downloaded": 0}
    made.session.loss()
    assert made.session.traffic["downloaded"] == 4


def test_training_asks_the_device_seldom() -> None:
    data = small_data(960)
    backend = Counting("reference")
    made = trainer(plain_net(), backend)
    made.plan(4, data)
    made.fit(data, 1, 4, progress=False)
    steps = made.progress.batches
    assert steps == 240
    # Two reads per poll at the epoch's end and every 0.4 s, a few around the epoch.
    assert backend.reads < steps / 4


def test_the_null_device_plans_without_computing() -> None:
    made = pg.Trainer(pg.zoo.card("lenet5").build(), device="null")
    summary = made.plan(64)
    assert "uint8[64,1,28,28]" in summary.title
    assert "guessed" in summary.title
    assert summary.launch_count > 10
    assert summary.flops > 1e8
    assert str(summary).count("\n") > 20


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (lambda: pg.nn.Linear(5, 2), "float32[8,5]"),
        (lambda: pg.nn.Sequential(pg.nn.Flatten(), pg.nn.Linear(3072, 2)), "uint8[8,3,32,32]"),
        (
            lambda: pg.nn.Sequential(
                pg.nn.Conv2d(3, 2, 3), pg.nn.Flatten(), pg.nn.Linear(2 * 62 * 62, 2)
            ),
            "uint8[8,3,64,64]",
        ),
    ],
)
def test_the_shape_of_a_sample_is_guessed(net, shape: str) -> None:
    assert shape in pg.Trainer(net(), device="null").plan(8).title


def test_a_compiled_step_takes_batches_of_any_size() -> None:
    step = pg.compile_step(plain_net(), optimizer=sgd(), device="reference")
    data = small_data(96)
    x = scaled(data)
    losses = [step(x[:n], data.y[:n]) for n in (96, 96, 32, 96, 96)]
    assert losses[-1] < losses[0]
    assert all(isinstance(loss, float) for loss in losses)


def test_weights_of_a_file_come_back(tmp_path) -> None:
    data = small_data()
    made = trainer(small_net())
    made.fit(data, 1, 32, progress=False)
    path = made.save(tmp_path / "deep" / "net.safetensors")
    fresh = trainer(small_net(), seed=5)
    fresh.load(path)
    assert same(made.parameters(), fresh.parameters())
    fresh.batch = made.batch  # another batch may round in another order
    np.testing.assert_array_equal(made.predict(data.x), fresh.predict(data.x))


def test_saved_names_and_layouts_are_the_usual_ones(tmp_path) -> None:
    from safetensors.numpy import load_file

    net = pg.nn.Sequential(pg.nn.Conv2d(1, 2, 3), pg.nn.BatchNorm2d(2), pg.nn.Flatten())
    path = trainer(net).save(tmp_path / "n.safetensors")
    shapes = {name: array.shape for name, array in load_file(path).items()}
    assert shapes == {
        "0.weight": (2, 1, 3, 3),
        "0.bias": (2,),
        "1.weight": (2,),
        "1.bias": (2,),
        "1.running_mean": (2,),
        "1.running_var": (2,),
        "1.num_batches_tracked": (),
    }


def test_regression_has_no_accuracy() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 4)).astype(np.float32)
    data = pg.data.arrays(x, (x @ rng.normal(size=(4, 1))).astype(np.float32))
    made = pg.Trainer(pg.nn.Linear(4, 1), "mse", pg.optim.Adam(0.05), "reference")
    history = made.fit(data, 20, 16, validate=data, progress=False)
    assert history[-1].loss < history[0].loss / 4
    assert history[-1].accuracy is None
    assert history[-1].validation_accuracy is None
    assert made.evaluate(data).accuracy is None
