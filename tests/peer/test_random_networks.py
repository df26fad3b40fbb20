"""Random small networks: loss, gradients and five steps of an optimizer are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.helpers.random_networks import Network, network_class, networks
from tests.helpers.tolerance import TERMS_AFTER_STEPS, TERMS_OF_NETWORK, allowed

from pocketgrad import nn
from pocketgrad.backends import open_backend
from pocketgrad.base.dtypes import Array, float32, int32
from pocketgrad.ir.core import TensorType
from pocketgrad.ir.text import graph_text, parse
from pocketgrad.ops import VOCABULARY
from pocketgrad.ops.move import concat
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, StepSpec, build_graph

pytestmark = pytest.mark.peer("torch")

FEW, ALL = 20, 100  # networks on each device
STEPS = 5
SUPPRESSED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # a device is a name


@given(network=networks())
@settings(max_examples=FEW, suppress_health_check=SUPPRESSED)
def test_a_random_network_is_pytorchs(device: str, network: Network) -> None:
    agree(network, device)


@pytest.mark.fuzz
@given(network=networks())
@settings(max_examples=ALL, suppress_health_check=SUPPRESSED)
def test_a_hundred_random_networks_are_pytorchs(device: str, network: Network) -> None:
    agree(network, device)


def agree(network: Network, device: str) -> None:
    """Train one network in both libraries from the same numbers."""
    model = network_class(nn, concat)(network.layers).initialise(network.seed)
    rng = np.random.default_rng(network.seed)
    shape = (network.batch, *network.sample)
    if network.vocabulary:
        x: Array = rng.integers(0, network.vocabulary, shape).astype(np.int32)
    else:
        x = rng.standard_normal(shape).astype(np.float32)
    y = rng.integers(0, network.classes, network.batch).astype(np.int32)
    peer = Peer(network, model.state_dict(), x, y)

    optimizer = getattr(nn.optim, network.optimizer)(**network.settings)
    spec = StepSpec(model, "cross_entropy", optimizer)
    kind = int32 if network.vocabulary else float32
    inputs = Inputs(TensorType(shape, kind), TensorType(y.shape, int32))
    text = graph_text(build_graph(spec, inputs, "train"))
    assert graph_text(parse(text, VOCABULARY)) == text
    session = Session(spec, open_backend(device))
    scale = 0.0
    for step in range(STEPS):
        session.train(inputs, x, y, np.ones(network.batch, np.float32))
        loss, gradients = peer.step()
        scale = scale or largest(gradients)
        terms = TERMS_AFTER_STEPS if step else TERMS_OF_NETWORK
        near({"loss": np.array(session.loss())}, {"loss": loss}, terms, 1.0, f"step {step}")
        near(session.gradients(), gradients, terms, scale, f"gradients of step {step}")
    last = peer.arrays()
    near(session.arrays(), last, TERMS_AFTER_STEPS, largest(last), "arrays at the end")


def near(
    found: dict[str, Array], wanted: dict[str, Array], terms: int, scale: float, what: str
) -> None:
    """Judged by the largest of all at first: a gradient that fades is a difference of such."""
    assert set(found) == set(wanted)
    bound = allowed(float32, terms, max(scale, largest(wanted)))
    for name, array in wanted.items():
        assert found[name].shape == array.shape
        error = float(np.abs(found[name] - array).max(initial=0.0))
        assert error <= bound, f"{what}: {name} is off by {error:.3g}, allowed {bound:.3g}"


def largest(arrays: dict[str, Array]) -> float:
    """The largest size of a number."""
    return max(float(np.abs(a).max(initial=0.0)) for a in arrays.values())


class Peer:
    """The network in PyTorch, in float64."""

    def __init__(self, network: Network, start: dict[str, Array], x: Array, y: Array) -> None:
        import torch

        self.model: Any = network_class(torch.nn, torch.cat)(network.layers).double()
        assert list(self.model.state_dict()) == list(start)
        self.model.load_state_dict({n: torch.from_numpy(a) for n, a in start.items()})
        self.optimizer = getattr(torch.optim, network.optimizer)(
            self.model.parameters(), **network.settings
        )
        self.x = torch.from_numpy(x) if network.vocabulary else torch.from_numpy(x).double()
        self.y = torch.from_numpy(y).long()
        self.loss = torch.nn.functional.cross_entropy

    def step(self) -> tuple[Array, dict[str, Array]]:
        """Loss and gradients before the update it makes."""
        self.optimizer.zero_grad()
        loss = self.loss(self.model(self.x), self.y)
        loss.backward()
        gradients = {n: p.grad.numpy().copy() for n, p in self.model.named_parameters()}
        self.optimizer.step()
        return loss.detach().numpy(), gradients

    def arrays(self) -> dict[str, Array]:
        """Parameters and buffers."""
        return {n: a.numpy() for n, a in self.model.state_dict().items()}
