"""Optimisers, clipping and schedules give what PyTorch's give."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate

from pocketgrad.base.dtypes import ALL, int32
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType
from pocketgrad.nn import optim, schedule
from pocketgrad.ops.tensor import Tensor

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer("torch")

OPTIMIZERS = [
    (optim.SGD(0.1), torch.optim.SGD, {}),
    (optim.SGD(0.1, 0.9), torch.optim.SGD, {"momentum": 0.9}),
    (
        optim.SGD(0.1, 0.9, dampening=0.3, weight_decay=0.02),
        torch.optim.SGD,
        {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.02},
    ),
    (
        optim.SGD(0.1, 0.9, weight_decay=0.02, nesterov=True),
        torch.optim.SGD,
        {"momentum": 0.9, "weight_decay": 0.02, "nesterov": True},
    ),
    (optim.Adam(0.01), torch.optim.Adam, {}),
    (optim.Adam(0.01, betas=(0.0, 0.9)), torch.optim.Adam, {"betas": (0.0, 0.9)}),
    (
        optim.Adam(0.01, (0.8, 0.95), 1e-3, 0.1, amsgrad=True),
        torch.optim.Adam,
        {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1, "amsgrad": True},
    ),
    (optim.AdamW(0.01), torch.optim.AdamW, {}),
    (optim.AdamW(0.01, weight_decay=0.0), torch.optim.AdamW, {"weight_decay": 0.0}),
    (
        optim.AdamW(0.01, weight_decay=0.3, amsgrad=True),
        torch.optim.AdamW,
        {"weight_decay": 0.3, "amsgrad": True},
    ),
    (optim.RMSprop(), torch.optim.RMSprop, {}),
    (
        optim.RMSprop(0.01, 0.9, 1e-4, 0.1, momentum=0.5),
        torch.optim.RMSprop,
        {"alpha": 0.9, "eps": 1e-4, "weight_decay": 0.1, "momentum": 0.5},
    ),
    (
        optim.RMSprop(0.01, centered=True, momentum=0.9),
        torch.optim.RMSprop,
        {"centered": True, "momentum": 0.9},
    ),
]


@pytest.mark.parametrize("size", [1, 7, 257])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-11), ("float32", 2e-5)])
@pytest.mark.parametrize(("ours", "theirs", "settings"), OPTIMIZERS, ids=lambda v: str(v)[:60])
def test_twenty_steps_of_an_optimizer_are_pytorchs(ours, theirs, settings, dtype, rtol, size):
    rng = np.random.default_rng(size)
    p = rng.standard_normal(size).astype(dtype)
    state = {name: np.zeros(size, dtype) for name in ours.state_names}
    peer = torch.tensor(p.copy(), requires_grad=True)
    reference = theirs([peer], lr=ours.lr, **settings)
    step = Update(ours, size, dtype)
    for t in range(1, 21):
        g = rng.standard_normal(size).astype(dtype)
        p, state = step(p, g, state, ours.lr, t)
        peer.grad = torch.tensor(g)
        reference.step()
    # A float32 may be off by a few units in the last place of the largest numbers added.
    np.testing.assert_allclose(p, peer.detach().numpy(), rtol, rtol)
    for name, array in state.items():
        np.testing.assert_allclose(array, reference.state[peer][name].numpy(), rtol, rtol)


class Update:
    """One update as a graph, worked out by the plain evaluator."""

    def __init__(self, optimizer: optim.Optimizer, size: int, dtype: str) -> None:
        flat, scalar = TensorType((size,), ALL[dtype]), TensorType((), ALL[dtype])
        with Builder(Tensor) as builder:
            p, g = builder.input(flat, "p"), builder.input(flat, "g")
            state = {n: builder.input(flat, n) for n in optimizer.state_names}
            lr, step = builder.input(scalar, "lr"), builder.input(TensorType((), int32), "step")
            (clipped,) = optimizer.clip([g])
            self.p, self.state = optimizer.update(p, clipped, state, lr, step)
        assert set(self.state) == set(optimizer.state_names)
        self.dtype = dtype
        self.graph = builder.graph([self.p, *self.state.values()])

    def __call__(self, p, g, state, lr, step):
        scalars = {"lr": np.array(lr, self.dtype), "step": np.array(step, np.int32)}
        known = evaluate(self.graph, {"p": p, "g": g, **state, **scalars})
        return known[self.p], {n: known[v] for n, v in self.state.items()}


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clipping_by_norm_is_pytorchs(max_norm):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(n) for n in (5, 33)]
    peers = [torch.zeros(a.size, dtype=torch.float64, requires_grad=True) for a in arrays]
    for peer, array in zip(peers, arrays, strict=True):
        peer.grad = torch.tensor(array)
    torch.nn.utils.clip_grad_norm_(peers, max_norm)
    with Builder(Tensor) as builder:
        grads = [
            builder.input(TensorType((a.size,), ALL["float64"]), f"g{i}")
            for i, a in enumerate(arrays)
        ]
        clipped = optim.SGD(clip_norm=max_norm).clip(grads)
    known = evaluate(builder.graph(clipped), {f"g{i}": a for i, a in enumerate(arrays)})
    for value, peer in zip(clipped, peers, strict=True):
        np.testing.assert_allclose(known[value], peer.grad.numpy(), 1e-12)


SCHEDULES = [
    (schedule.StepLR(7, 0.3), lambda o, lr: lr.StepLR(o, 7, 0.3)),
    (schedule.MultiStepLR([5, 11, 30], 0.5), lambda o, lr: lr.MultiStepLR(o, [5, 11, 30], 0.5)),
    (schedule.ExponentialLR(0.95), lambda o, lr: lr.ExponentialLR(o, 0.95)),
    (schedule.LinearLR(13, 0.2, 0.9), lambda o, lr: lr.LinearLR(o, 0.2, 0.9, 13)),
    (schedule.CosineLR(49, 0.1), lambda o, lr: lr.CosineAnnealingLR(o, 49, 0.1)),
    (schedule.OneCycleLR(50), lambda o, lr: lr.OneCycleLR(o, 1.0, 50, cycle_momentum=False)),
    (
        schedule.OneCycleLR(50, 0.2, "linear", 10.0, 100.0),
        lambda o, lr: lr.OneCycleLR(
            o,
            1.0,
            50,
            pct_start=0.2,
            anneal_strategy="linear",
            cycle_momentum=False,
            div_factor=10.0,
            final_div_factor=100.0,
        ),
    ),
    (
        schedule.Warmup(9, schedule.CosineLR(40), start=0.1),
        lambda o, lr: lr.SequentialLR(
            o, [lr.LinearLR(o, 0.1, 1.0, 9), lr.CosineAnnealingLR(o, 40)], [9]
        ),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), SCHEDULES, ids=[str(s)[:60] for s, _ in SCHEDULES])
def test_a_schedule_is_pytorchs_at_every_step(ours, theirs):
    peer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    with warnings.catch_warnings():  # SequentialLR steps its parts in a way PyTorch warns about
        warnings.simplefilter("ignore")
        reference = theirs(peer, torch.optim.lr_scheduler)
        for t in range(49):
            assert ours.at(t) == pytest.approx(peer.param_groups[0]["lr"], rel=3e-5, abs=2e-7), t
            peer.step()
            reference.step()
