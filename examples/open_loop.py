"""A loop of your own: the step is a function of a batch, everything else is yours.

Changes the learning rate while training, reads parameters and gradients as NumPy arrays.
"""

from __future__ import annotations

import sys

import numpy as np

import pocketgrad as pg

rng = np.random.default_rng(0)
truth = rng.normal(size=(8, 1)).astype(np.float32)


def batch(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points on a plane, with noise."""
    x = rng.normal(size=(n, 8)).astype(np.float32)
    return x, x @ truth + 0.01 * rng.normal(size=(n, 1)).astype(np.float32)


net = pg.nn.Linear(8, 1)
step = pg.compile_step(net, loss="mse", optimizer=pg.optim.SGD(0.1))
steps = 50 if "--quick" in sys.argv else 500
for i in range(steps):
    if i == steps // 2:
        step.trainer.lr = 0.01  # no new plan
    loss = step(*batch(32))
    if i % 10 == 0:
        norm = np.linalg.norm(step.trainer.gradients()["weight"])
        print(f"step {i}: loss {loss:.5f}, gradient norm {norm:.5f}")

found = step.trainer.parameters()["weight"]
print("largest error of a weight:", float(np.abs(found - truth.T).max()))
