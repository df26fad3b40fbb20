"""Batches that stay on the device: same training as with batches that come each step."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.training import plain_net, same, sgd

import pocketgrad as pg
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, NumericsError, SettingError, ShapeError
from pocketgrad.train.open_loop import CompiledStep

COUNT, BATCH = 7, 8


def batches(count: int = COUNT) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(1)
    return [
        (
            rng.standard_normal((BATCH, 1, 4, 4)).astype(np.float32),
            rng.integers(0, 3, BATCH).astype(np.int32),
        )
        for _ in range(count)
    ]


def step(device: str, tiny: bool = True, accumulate: int = 1) -> CompiledStep:
    """``tiny``: all in one launch; else images large enough for several."""
    nn = pg.nn
    wide = nn.Sequential(nn.Flatten(), nn.Linear(16, 999), nn.ReLU(), nn.Linear(999, 3))
    net = plain_net() if tiny else wide
    made: CompiledStep = pg.compile_step(net, optimizer=sgd(), device=device, accumulate=accumulate)
    return made


@pytest.mark.parametrize("tiny", [True, False])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_resident_batches_train_to_the_same_bits(device: str, tiny: bool, accumulate: int) -> None:
    ours, theirs = step(device, tiny, accumulate), step(device, tiny, accumulate)
    data = ours.upload(batches())
    ours.train(data)
    ours.train(data, 2, 3)
    ours.train(data, 6)
    last = 0.0
    for x, y in [*batches(), *batches()[2:5], batches()[6]]:
        last = theirs(x, y)
    assert ours.loss() == last
    assert same(ours.trainer.session.export(), theirs.trainer.session.export())
    assert ours.trainer.session.totals() == theirs.trainer.session.totals()


def test_training_on_resident_batches_moves_nothing(device: str) -> None:
    made = step(device)
    data = made.upload(batches())
    made.train(data)
    before = made.trainer.session.moved_nbytes
    made.train(data)
    assert made.trainer.session.moved_nbytes == before
    made.loss()
    assert made.trainer.session.moved_nbytes - before < 64


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_fault_names_the_resident_batch_and_freezes_the_state(
    device: str, accumulate: int
) -> None:
    made = step(device, accumulate=accumulate)
    bad = batches()
    bad[4][0][3, 0, 1, 1] = np.nan
    data = made.upload(bad)
    made.train(data, 0, 4)
    made.loss()
    good = made.trainer.parameters()
    made.train(data, 4)
    with pytest.raises((DataError, NumericsError), match="resident batch 4"):
        made.loss()
    if accumulate == 1:
        assert same(made.trainer.parameters(), good)
    made.train(data, 0, 4)
    assert np.isfinite(made.loss())


def test_what_cannot_be_is_told(device: str) -> None:
    made = step(device)
    with pytest.raises(DataError, match="no batch to upload"):
        made.upload([])
    x, y = batches(1)[0]
    with pytest.raises(ShapeError, match="batch 1 is x"):
        made.upload([(x, y), (x[:4], y[:4])])
    data = made.upload([(x, y)])
    with pytest.raises(SettingError, match="batches 0 to 2 of 1 resident ones"):
        made.train(data, 0, 2)
