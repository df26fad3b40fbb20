"""Models train as the same ones in PyTorch: loss, every gradient, three steps with momentum.

At small width, in float32; a model of each kind on every device too, and tools/zoo-table has all of
them there. The same structure in float64 is compared in test_zoo_against_torch.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.tolerance import DEEP, SHALLOW
from tests.helpers.zoo_training import MOMENTUM, RATE, STEPS, apart, trained
from tests.zoo.small import batch, small, without_dropout

from pocketgrad.base.dtypes import Array

torch = pytest.importorskip("torch")
from tests.peer.test_zoo_against_torch import MODELS  # noqa: E402  # needs torch

pytestmark = pytest.mark.peer("torch")

# Deep at any width: rounding grows from layer to layer, and kernels take long to build.
LONG = {
    "bert-base", "densenet100", "densenet100-bc", "densenet40", "googlenet", "xception",
}  # fmt: skip
# Batch norm over a few samples in fifty layers: moving the inputs of ResNet-50 by their last bit
# moves its gradient by a hundredth: float32 says nothing there; float64 does, in the other module.
UNSTABLE = {"mobilenet-v2", "resnet50", "resnet101", "resnet152"}
NAMES = [
    pytest.param(n, marks=[pytest.mark.slow] if n in LONG else [])
    for n in MODELS
    if n not in UNSTABLE
]


OF_EACH_KIND = ("lenet5", "mlp-784-256-128-16", "reduced-mobilenet", "char-lstm", "bert-tiny")


@pytest.mark.parametrize("name", NAMES)
def test_a_model_trains_as_the_same_one_in_pytorch(name: str) -> None:
    compare(name, "reference")


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_a_model_of_each_kind_trains_so_on_devices(name: str, device: str) -> None:
    compare(name, device)


def compare(name: str, device: str) -> None:
    """Train a model here and there, on the same batch."""
    net, peer = without_dropout(small(name)).initialise(3), MODELS[name]()
    peer.load_state_dict({n: torch.from_numpy(a) for n, a in net.state_dict().items()})
    inputs = batch(name)
    ours = trained(net, inputs, device)

    optimizer = torch.optim.SGD(peer.parameters(), RATE, momentum=MOMENTUM)
    losses: list[float] = []
    first: dict[str, Array] = {}
    for _ in range(STEPS):
        found = peer(*[torch.from_numpy(a) for a in inputs])
        outputs = found if isinstance(found, tuple) else (found,)
        loss = sum((output**2).mean() for output in outputs)
        optimizer.zero_grad()
        loss.backward()
        first = first or {n: p.grad.numpy().copy() for n, p in peer.named_parameters()}
        optimizer.step()
        losses.append(loss.item())

    bound = DEEP if name in LONG else SHALLOW
    np.testing.assert_allclose(ours.losses, losses, rtol=bound)
    assert apart(ours.gradients, first) < bound
    for key, gradient in first.items():
        assert ours.gradients[key].any() == bool(gradient.any()), key
    theirs = {n: p.detach().numpy() for n, p in peer.named_parameters()}
    moved = {n: theirs[n] - ours.before[n] for n in theirs}
    assert apart({n: ours.after[n] - ours.before[n] for n in theirs}, moved) < bound
