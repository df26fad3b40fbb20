"""Adapters: what each module holds, and models in PyTorch as our description gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.describe import outcome
from tests.zoo.small import OPTIONS, batch, small, without_dropout

from pocketgrad import zoo
from pocketgrad.bench.adapters import ADAPTERS, OURS, PEERS, adapter
from pocketgrad.bench.agreement import RULES
from pocketgrad.bench.describe import describe
from pocketgrad.bench.environments import PINS
from pocketgrad.bench.network import KINDS, network_from_json
from pocketgrad.bench.suites import SUITES
from pocketgrad.bench.task import NotWrittenError

FOLDER = Path(__file__).parents[2] / "src" / "pocketgrad" / "bench" / "adapters"
MODELS = sorted({row.model for rows in SUITES.values() for row in rows})


def test_every_adapter_is_listed_with_its_pins() -> None:
    assert {p.stem for p in FOLDER.glob("*.py")} - {"__init__"} == set(ADAPTERS)
    assert set(PINS) == set(PEERS)


@pytest.mark.parametrize("name", PEERS)
def test_an_adapter_holds_what_the_protocol_asks(name: str) -> None:
    module = adapter(name)  # without its framework
    assert module.REQUIRES
    assert module.VARIANTS
    assert all(v.precision in RULES and v.meaning for v in module.VARIANTS)
    assert callable(module.version)
    assert callable(module.open_session)
    assert not adapter(OURS).VARIANTS  # they are the devices


@pytest.mark.parametrize("name", MODELS)
def test_a_description_is_whole_and_survives_json(name: str) -> None:
    net, sample = (
        without_dropout(small(name)),
        zoo.card(name).sample(OPTIONS.get(name, {}).get("image"))[0],
    )
    network = describe(net, sample, 3)
    assert {layer.kind for layer in network.layers} <= set(KINDS)
    known = {network.input}
    for layer in network.layers:
        assert set(layer.inputs) <= known
        known.add(layer.output)
    weighted = {n.rpartition(".")[0] for n, _ in net.tensors()}
    assert weighted <= {layer.name for layer in network.layers}
    assert network_from_json(network.to_json()) == network


def test_what_peers_cannot_share_is_refused_by_name() -> None:
    net = without_dropout(small("googlenet"))
    with pytest.raises((NotWrittenError, ValueError)):
        describe(net, zoo.card("googlenet").sample(32)[0], 2)


@pytest.mark.peer("torch")
@pytest.mark.parametrize("name", MODELS)
def test_a_described_model_is_ours_in_pytorch(name: str) -> None:
    """Outputs and gradients in float64; ours are compared with models written by hand elsewhere."""
    import torch

    from pocketgrad.bench.adapters.torch import module

    net = without_dropout(small(name)).initialise(3)
    (x,) = batch(name)
    sample = zoo.card(name).sample(OPTIONS.get(name, {}).get("image"))[0]
    peer = module(describe(net, sample, len(x))).double().train()
    state: dict[str, Any] = {n: torch.from_numpy(a) for n, a in net.state_dict().items()}
    peer.load_state_dict({n: a.double() if a.is_floating_point() else a for n, a in state.items()})
    tensor = torch.from_numpy(x)
    found = peer(tensor.double() if tensor.is_floating_point() else tensor.long())
    got = outcome(net, x)
    np.testing.assert_allclose(found.detach().numpy(), got.outputs[0], rtol=1e-5, atol=1e-7)
    (found * torch.from_numpy(got.directions[0])).sum().backward()
    for key, parameter in peer.named_parameters():
        wanted = got.gradients[key]
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(
            parameter.grad.numpy() / scale, wanted / scale, rtol=1e-5, atol=1e-7, err_msg=key
        )
