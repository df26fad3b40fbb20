"""Integers go into a model as they are: tokens are indices, not measurements."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgrad as pg


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_model_of_tokens_trains_on_indices(dtype: str) -> None:
    model = pg.nn.Sequential(pg.nn.Embedding(7, 5), pg.nn.Flatten(), pg.nn.Linear(15, 2))
    trainer = pg.Trainer(model, optimizer=pg.optim.SGD(0.5), device="reference")
    tokens = np.arange(12).reshape(4, 3).astype(dtype) % 7
    labels = np.array([0, 1, 1, 0], np.int32)
    losses = [trainer.step(tokens, labels) for _ in range(20)]
    assert losses[-1] < 0.3 * losses[0]
