"""Two hundred steps of training give PyTorch's losses and weights, as far as rounding lets them.

What rounding alone does over that many steps is measured: PyTorch trains in float32 and in float64
from the same weights on the same batches, and ours may be a few times as far from float64 as that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.tolerance import LONG_RUN, UNIT

from pocketgrad import data, zoo
from pocketgrad.backends import open_backend
from pocketgrad.base.dtypes import Array
from pocketgrad.nn.optim import SGD
from pocketgrad.train.batches import inputs_of
from pocketgrad.train.session import Session
from pocketgrad.train.step import StepSpec, Stored

pytestmark = pytest.mark.peer("torch")

STEPS = 200
EARLY = 100  # until here no ReLU has met a sample so near its kink that rounding decides the side
BATCH = 32
MOMENTUM = 0.9
# Fast enough to learn, slow enough that a difference of one rounding does not yet grow to chaos.
RATES = {"lenet5": 0.005, "mlp-784-256-128-16": 0.05}
Run = tuple[Array, dict[str, Array]]  # the loss of each step, and the last weights


def batches() -> tuple[data.Dataset, list[tuple[Array, Array]]]:
    """Real images, the same order each time."""
    dataset = data.embedded()
    found: list[tuple[Array, Array]] = []
    while len(found) < STEPS:
        whole = (b for b in dataset.loader(BATCH, seed=len(found)) if b.count == BATCH)
        found += [(b.x.copy(), b.y.copy()) for b in whole]
    return dataset, found[:STEPS]


def theirs(name: str, start: dict[str, Array], double: bool) -> Run:
    """PyTorch's run."""
    import torch

    layers: dict[str, list[Any]] = {
        "lenet5": [
            torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(6, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
            torch.nn.Linear(400, 120), torch.nn.ReLU(), torch.nn.Linear(120, 84), torch.nn.ReLU(),
            torch.nn.Linear(84, 10),
        ],
        "mlp-784-256-128-16": [
            torch.nn.Flatten(), torch.nn.Linear(784, 256), torch.nn.ReLU(),
            torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 16), torch.nn.ReLU(),
            torch.nn.Linear(16, 10),
        ],
    }  # fmt: skip
    dtype = torch.float64 if double else torch.float32
    model = torch.nn.Sequential(*layers[name]).to(dtype)
    arrays = (torch.from_numpy(a.copy()).to(dtype) for a in start.values())
    model.load_state_dict(dict(zip(model.state_dict(), arrays, strict=True)))
    optimizer = torch.optim.SGD(model.parameters(), RATES[name], MOMENTUM)
    dataset, given = batches()
    losses = []
    for x, y in given:
        images = (torch.from_numpy(x).to(dtype) - dataset.mean[0]) / dataset.std[0]
        loss = torch.nn.functional.cross_entropy(model(images), torch.from_numpy(y).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = (p.detach().numpy() for p in model.state_dict().values())
    return np.array(losses), dict(zip(start, weights, strict=True))


def ours(name: str, device: str) -> tuple[dict[str, Array], Run]:
    """The weights at first, and our run."""
    model = zoo.card(name).build().initialise(1)
    start = model.state_dict()
    spec = StepSpec(model, "cross_entropy", SGD(RATES[name], MOMENTUM))
    session = Session(spec, open_backend(device))
    dataset, given = batches()
    losses = []
    for x, y in given:
        inputs = inputs_of(x, y, Stored.of(dataset))
        session.train(inputs, x, y, np.ones(BATCH, np.float32))
        losses.append(session.loss())
    return start, (np.array(losses), session.arrays())


def apart(a: Run, b: Run) -> tuple[Array, float]:
    """Relative difference of the loss at each step, and of all weights' norm at the end."""
    losses = np.abs(a[0] - b[0]) / np.abs(b[0])
    squares = sum(float(np.sum((a[1][n] - b[1][n]) ** 2)) for n in b[1])
    whole = sum(float(np.sum(b[1][n] ** 2)) for n in b[1])
    return losses, (squares / whole) ** 0.5


@pytest.mark.parametrize("name", RATES)
def test_two_hundred_steps_stay_with_pytorch(name: str, device: str) -> None:
    start, found = ours(name, device)
    exact = theirs(name, start, double=True)
    rounding, of_weights = apart(theirs(name, start, double=False), exact)
    losses, weights = apart(found, exact)
    assert exact[0][-20:].mean() < 0.6 * exact[0][:20].mean()
    floor = 32 * UNIT["float32"]  # a loss is a sum of as many terms, rounded in another order
    for steps in (EARLY, STEPS):
        bound = LONG_RUN * max(float(rounding[:steps].max()), floor)
        worst = int(np.argmax(losses[:steps]))
        assert losses[worst] <= bound, (
            f"the loss of step {worst} is off by {losses[worst]:.3g}, allowed {bound:.3g}"
        )
    assert weights <= LONG_RUN * of_weights
