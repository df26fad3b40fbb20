"""Checkpoints: training that is interrupted goes on as if nothing had happened.

The interruption here is an exception out of a callback; it could be `kill -9` or an empty battery.
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np

import pocketgrad as pg
from pocketgrad.train import Callback

quick = "--quick" in sys.argv
data = pg.data.embedded().subset(512 if quick else 4096)


class PowerLoss(Callback):
    """Ends training at a step, without farewell."""

    every = 13

    def on_step(self, trainer: object, step: int) -> None:
        """The battery is empty."""
        raise RuntimeError(f"power lost after step {step}")


def trainer(*callbacks: Callback) -> pg.Trainer:
    """The same training each time: what differs is refused on resuming."""
    net = pg.zoo.card("mlp-784-256-128-16").build()
    return pg.Trainer(net, optimizer=pg.optim.Adam(1e-3), seed=3, callbacks=callbacks)


with tempfile.TemporaryDirectory() as folder:
    uninterrupted = trainer()
    uninterrupted.fit(data, epochs=2)
    try:
        trainer(PowerLoss()).fit(data, epochs=2, checkpoint=folder, checkpoint_every_s=0)
    except RuntimeError as error:
        print(error)
    resumed = trainer()
    print("resumed", resumed.resume(folder).name)
    resumed.fit(data, epochs=2, checkpoint=folder)

ours, theirs = resumed.parameters(), uninterrupted.parameters()
print("bit-identical:", all(np.array_equal(ours[name], theirs[name]) for name in theirs))
