"""Layers give PyTorch's outputs, gradients, names and statistics, at odd sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.helpers.describe import outcome

from pocketgrad import nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer("torch")

CLOSE = 1e-6, 1e-8  # float64 on both sides, but constants of formulas such as 1/6 are float32


@dataclass(frozen=True)
class Case:
    """A layer by its name and arguments, which both libraries take."""

    name: str
    args: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...]
    settings: tuple[tuple[str, Any], ...] = ()
    integers: int = 0  # inputs are indices below this
    training: bool = True

    def ours(self) -> nn.Module:
        layer: nn.Module = getattr(nn, self.name)(*self.args, **dict(self.settings))
        return layer

    def theirs(self) -> Any:
        return getattr(torch.nn, self.name)(*self.args, **dict(self.settings)).double()

    def inputs(self) -> list[Any]:
        rng = np.random.default_rng(1)
        if self.integers:
            return [rng.integers(0, self.integers, s) for s in self.shapes]
        return [rng.standard_normal(s).astype(np.float32) for s in self.shapes]

    def __str__(self) -> str:
        settings = ",".join(f"{k}={v}" for k, v in self.settings)
        return f"{self.name}{self.args}{settings}{'' if self.training else ' in use'}"


def case(name: str, args: tuple[Any, ...], *shapes: tuple[int, ...], **more: Any) -> Case:
    own = {k: more.pop(k) for k in ("integers", "training") if k in more}
    return Case(name, args, shapes, tuple(more.items()), **own)


IMAGE = (2, 6, 11, 7)

CASES = [
    case("Linear", (7, 5), (3, 7)),
    case("Linear", (7, 5), (7,)),
    case("Linear", (17, 33, False), (2, 3, 17)),
    case("Conv1d", (6, 4, 3), (2, 6, 13), stride=2, padding=1),
    case("Conv1d", (6, 4, 4), (2, 6, 13), padding="same", groups=2),
    case("Conv2d", (6, 4, 3), IMAGE),
    case("Conv2d", (6, 8, (3, 2)), IMAGE, stride=(2, 1), padding=(2, 1), dilation=(1, 2)),
    case("Conv2d", (6, 6, 3), IMAGE, groups=6, padding=1, bias=False),
    case("Conv2d", (6, 4, 4), IMAGE, padding="same", dilation=2),
    case("ConvTranspose2d", (6, 4, 3), IMAGE, stride=2, padding=1, output_padding=1),
    case("ConvTranspose2d", (6, 4, (2, 3)), IMAGE, groups=2, dilation=2),
    case("MaxPool2d", (2,), IMAGE),
    case("MaxPool2d", (3,), IMAGE, stride=2, padding=1, ceil_mode=True),
    case("AvgPool2d", (3,), IMAGE, stride=2, padding=1, ceil_mode=True),
    case("AvgPool2d", ((2, 3),), IMAGE, padding=1, count_include_pad=False),
    case("AdaptiveAvgPool2d", (1,), IMAGE),
    case("AdaptiveAvgPool2d", ((4, None),), IMAGE),
    case("AdaptiveMaxPool2d", ((3, 5),), IMAGE),
    case("Flatten", (), IMAGE),
    case("Flatten", (1, 2), IMAGE),
    case("Identity", (), (3, 1)),
    case("Embedding", (9, 5), (2, 7), integers=9),
    case("Embedding", (3, 5, 1), (4, 7), integers=3),
    case("ReLU", (), (3, 33)),
    case("ReLU6", (), (3, 33)),
    case("LeakyReLU", (0.2,), (3, 33)),
    case("ELU", (0.7,), (3, 33)),
    case("SiLU", (), (3, 33)),
    case("Hardswish", (), (3, 33)),
    case("Hardsigmoid", (), (3, 33)),
    case("GELU", (), (3, 33)),
    case("GELU", ("tanh",), (3, 33)),
    case("Softplus", (2.0,), (3, 33)),
    case("Sigmoid", (), (3, 33)),
    case("Tanh", (), (3, 33)),
    case("Softmax", (1,), (3, 5, 7)),
    case("LogSoftmax", (-1,), (3, 5, 7)),
    case("BatchNorm1d", (5,), (7, 5)),
    case("BatchNorm1d", (5, 1e-3, None), (3, 5, 7)),
    case("BatchNorm2d", (6,), IMAGE),
    case("BatchNorm2d", (6,), IMAGE, training=False),
    case("BatchNorm2d", (6,), IMAGE, affine=False, momentum=0.3),
    case("BatchNorm2d", (6,), IMAGE, track_running_stats=False, training=False),
    case("LayerNorm", (7,), IMAGE),
    case("LayerNorm", ((11, 7),), IMAGE, eps=1e-2, bias=False),
    case("LayerNorm", (7,), (3, 7), elementwise_affine=False),
    case("GroupNorm", (3, 6), IMAGE),
    case("GroupNorm", (1, 6), (2, 6), affine=False),
    case("LocalResponseNorm", (5,), IMAGE),
    case("LocalResponseNorm", (2, 0.3, 0.6, 2.0), IMAGE),
    case("Dropout", (0.3,), (3, 33), training=False),
    case("Dropout", (0.0,), (3, 33)),
    case("LSTM", (5, 7), (3, 2, 5)),
    case("LSTM", (5, 3, 2), (4, 2, 5), bidirectional=True, batch_first=True),
    case("LSTM", (5, 7), (1, 1, 5), bias=False),
    case("GRU", (5, 7), (3, 2, 5)),
    case("GRU", (5, 3, 2), (4, 2, 5), bidirectional=True, batch_first=True),
    case("GRU", (5, 7), (1, 1, 5), bias=False),
    case("Upsample", (), IMAGE, size=(13, 20)),
    case("Upsample", (), IMAGE, scale_factor=2),
    case("Upsample", (), IMAGE, size=(5, 15), mode="bilinear"),
    case("Upsample", (), IMAGE, scale_factor=3, mode="bilinear", align_corners=True),
]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")  # is what we test
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_layer_is_pytorchs(case):
    ours, theirs = case.ours().initialise(5), case.theirs()
    adopt(theirs, ours)
    compare(ours, theirs, case.inputs(), case.training)


def adopt(theirs: Any, ours: nn.Module) -> None:
    """Give both the same weights, none of them 0 or 1; the names must be the same, in order."""
    rng = np.random.default_rng(2)
    state = ours.state_dict()
    assert list(state) == list(theirs.state_dict())
    moved = {n: (a + rng.uniform(0.1, 0.5, a.shape)).astype(a.dtype) for n, a in state.items()}
    ours.load_state_dict(moved)
    theirs.load_state_dict({n: torch.tensor(a) for n, a in moved.items()})


def compare(
    ours: nn.Module,
    theirs: Any,
    inputs: list[Any],
    training: bool = True,
    *,
    buffers: bool = True,
    call: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
) -> None:
    theirs.train(training)
    peers = [torch.tensor(a) for a in inputs]
    peers = [t.double().requires_grad_() if t.is_floating_point() else t for t in peers]
    got = outcome(ours, *inputs, training=training, call=call[0] if call else None)
    wanted = flat((call[1] if call else theirs)(*peers))
    for ours_out, out in zip(got.outputs, wanted, strict=True):
        np.testing.assert_allclose(ours_out, out.detach().numpy(), *CLOSE)
    pairs = zip(wanted, got.directions, strict=True)
    sum((out * torch.tensor(d)).sum() for out, d in pairs).backward()
    grads = {n: p.grad for n, p in theirs.named_parameters()}
    grads |= {f"input{i}": t.grad for i, t in enumerate(peers)}
    grads = {n: g for n, g in grads.items() if g is not None}
    assert set(got.gradients) == set(grads)
    for name, grad in grads.items():
        np.testing.assert_allclose(got.gradients[name], grad.numpy(), *CLOSE, err_msg=name)
    for name, buffer in theirs.named_buffers() if buffers else ():
        new = got.updates.get(name)
        mine = dict(ours.named_buffers())[name].data if new is None else new
        np.testing.assert_allclose(mine, buffer.numpy(), *CLOSE, err_msg=name)
        assert (new is not None) == training, name


def flat(result: Any) -> list[Any]:
    """All tensors of a nested result, in order."""
    if torch.is_tensor(result):
        return [result]
    return [] if result is None else [t for part in result for t in flat(part)]


ATTENTIONS = [
    ({}, {}),
    ({"batch_first": True, "bias": False}, {}),
    ({"kdim": 5, "vdim": 3}, {}),
    ({}, {"key_padding_mask": np.array([[False, True, False, False], [True] * 3 + [False]])}),
    ({}, {"attn_mask": np.arange(5)[:, None] * 4 % 7 < np.arange(4)}),
    ({}, {"attn_mask": np.linspace(-1, 1, 20).reshape(5, 4)}),
    ({"batch_first": True}, {"attn_mask": np.arange(6 * 20).reshape(6, 5, 4) % 3 == 1}),
]


@pytest.mark.parametrize(("settings", "masks"), ATTENTIONS)
def test_attention_is_pytorchs(settings, masks):
    ours = nn.MultiheadAttention(6, 3, **settings)
    theirs = torch.nn.MultiheadAttention(6, 3, **settings).double()
    adopt(theirs, ours)
    rng = np.random.default_rng(4)
    sizes = (5, 6), (4, settings.get("kdim", 6)), (4, settings.get("vdim", 6))
    lead = settings.get("batch_first", False)
    shapes = [(2, n, c) if lead else (n, 2, c) for n, c in sizes]
    inputs = [rng.standard_normal(s).astype(np.float32) for s in shapes] + list(masks.values())

    def ours_called(q, k, v, *mask):
        return ours(q, k, v, **dict(zip(masks, mask, strict=True)))

    def theirs_called(q, k, v, *mask):
        return theirs(q, k, v, need_weights=False, **dict(zip(masks, mask, strict=True)))

    compare(ours, theirs, inputs, call=(ours_called, theirs_called))


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_first_states_of_recurrent_layers_are_pytorchs(name):
    ours, theirs = getattr(nn, name)(3, 4, 2), getattr(torch.nn, name)(3, 4, 2).double()
    adopt(theirs, ours)
    rng = np.random.default_rng(4)
    states = 2 if name == "LSTM" else 1
    shapes = [(5, 2, 3)] + [(2, 2, 4)] * states
    inputs = [rng.standard_normal(s).astype(np.float32) for s in shapes]

    def called(layer):
        return lambda x, *first: layer(x, first if states == 2 else first[0])

    compare(ours, theirs, inputs, call=(called(ours), called(theirs)))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("CrossEntropyLoss", {}),
        ("CrossEntropyLoss", {"label_smoothing": 0.2, "ignore_index": 2}),
        ("CrossEntropyLoss", {"weight": np.array([1, 2, 0.5, 0.1, 3]), "ignore_index": 2}),
        ("BCEWithLogitsLoss", {}),
        ("BCEWithLogitsLoss", {"pos_weight": np.array([1, 2, 0.5, 0.1, 3])}),
        ("MSELoss", {}),
        ("L1Loss", {}),
        ("HuberLoss", {"delta": 0.4}),
        ("SmoothL1Loss", {"beta": 0.4}),
    ],
)
def test_a_loss_is_pytorchs(name, settings, reduction):
    ours = getattr(nn, name)(reduction=reduction, **settings)
    arrays = {k: torch.tensor(v) for k, v in settings.items() if isinstance(v, np.ndarray)}
    theirs = getattr(torch.nn, name)(reduction=reduction, **{**settings, **arrays}).double()
    rng = np.random.default_rng(6)
    target: Any = rng.random((7, 5)).astype(np.float32)
    if name == "CrossEntropyLoss":
        target = rng.integers(0, 5, 7)
        target[3] = settings.get("ignore_index", 1)
    inputs = [rng.standard_normal((7, 5)).astype(np.float32), target]
    theirs.train()
    compare(ours, theirs, inputs, buffers=False)  # class weights are settings here


@pytest.mark.parametrize("name", sorted({c.name for c in CASES} | {"MultiheadAttention"}))
def test_default_initial_values_spread_as_pytorchs(name):
    found = next((c for c in CASES if c.name == name), case(name, (12, 3)))
    torch.manual_seed(0)
    peers = [dict(found.theirs().named_parameters()) for _ in range(60)]
    ours = [found.ours().initialise(seed).state_dict() for seed in range(60)]
    for parameter in peers[0]:
        want = np.stack([p[parameter].detach().numpy() for p in peers])
        got = np.stack([p[parameter] for p in ours])
        assert np.abs(got).max() == pytest.approx(np.abs(want).max(), rel=0.2)
        assert got.std() == pytest.approx(want.std(), rel=0.1, abs=1e-12)
        assert abs(got.mean() - want.mean()) < 0.15 * max(want.std(), 1e-12)


def test_every_layer_has_a_case_here():
    layers = {n for n in nn.__all__ if isinstance(getattr(nn, n), type)}
    layers = {n for n in layers if issubclass(getattr(nn, n), nn.Module)}
    others = {"Module", "ModuleList", "Sequential", "MultiheadAttention"}
    losses = {n for n in layers if n.endswith("Loss")}
    assert layers - {c.name for c in CASES} == others | losses
