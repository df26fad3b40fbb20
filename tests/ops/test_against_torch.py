"""Operations and compositions against PyTorch: results and gradients, at odd sizes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.helpers.against_torch import Case, compare
from tests.helpers.evaluate import evaluate
from tests.helpers.gradcheck import graph_from
from tests.helpers.tolerance import assert_close

from pocketgrad.base.dtypes import float64
from pocketgrad.ir.core import TensorType
from pocketgrad.ops import (
    activation,
    arithmetic,
    attention,
    average,
    conv,
    embed,
    extremes,
    linalg,
    loss,
    move,
    norm,
    pool,
    recurrent,
    reduce,
    resize,
    transcendental,
)

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = pytest.mark.peer("torch")

fixed = arithmetic.detach  # PyTorch has no gradient for some inputs
RNG = np.random.default_rng(3)


def ints(low: int, high: int, *shape: int, dtype: str = "int64") -> Any:
    return RNG.integers(low, high, shape).astype(dtype)


def activations() -> list[Case]:
    pairs: list[tuple[str, Any, Any]] = [
        ("relu", transcendental.relu, F.relu),
        ("relu6", activation.relu6, F.relu6),
        ("leaky_relu", partial(activation.leaky_relu, slope=0.2), lambda x: F.leaky_relu(x, 0.2)),
        ("elu", partial(activation.elu, alpha=1.5), lambda x: F.elu(x, 1.5)),
        ("silu", activation.silu, F.silu),
        ("hardswish", activation.hardswish, F.hardswish),
        ("hardsigmoid", activation.hardsigmoid, F.hardsigmoid),
        ("gelu", activation.gelu, F.gelu),
        ("gelu_tanh", partial(activation.gelu, approximate="tanh"),
         lambda x: F.gelu(x, approximate="tanh")),
        ("sigmoid", transcendental.sigmoid, torch.sigmoid),
        ("tanh", transcendental.tanh, torch.tanh),
        ("erf", transcendental.erf, torch.erf),
        ("expm1", transcendental.expm1, torch.expm1),
        ("abs", arithmetic.abs_, torch.abs),
        ("clip", lambda x: activation.clip(x, -1.0, 1.5), lambda x: x.clamp(-1.0, 1.5)),
        ("clip_low", lambda x: activation.clip(x, low=0.5), lambda x: x.clamp(min=0.5)),
        ("square", activation.square, torch.square),
        ("softmax", activation.softmax, lambda x: F.softmax(x, -1)),
        ("softmax_1", partial(activation.softmax, axis=1), lambda x: F.softmax(x, 1)),
        ("log_softmax", activation.log_softmax, lambda x: F.log_softmax(x, -1)),
        ("logsumexp", activation.logsumexp, lambda x: torch.logsumexp(x, -1)),
        ("logsumexp_all", lambda x: activation.logsumexp(x, (0, 1, 2), keepdims=True),
         lambda x: torch.logsumexp(x, (0, 1, 2), keepdim=True)),
    ]  # fmt: skip
    cases = []
    for name, ours, theirs in pairs:
        single = name.startswith("hard")  # PyTorch's 1/6
        cases.append(Case(name, ours, theirs, ((3, 5, 33),), -7, 7, single))
        cases.append(Case(f"{name}_one", ours, theirs, ((1, 1, 1),), 1, 2, single))
    # PyTorch gives up log1p(exp(x)) for x above 20; the difference is 2e-9
    beta = partial(activation.softplus, beta=2.0)
    cases.append(Case("softplus", beta, lambda x: F.softplus(x, 2.0), ((5, 31),), -9, 9))
    return cases


def convolutions() -> list[Case]:
    shapes: list[tuple[str, dict[str, Any], Any, Any]] = [
        ("1x1", {}, (2, 3, 7, 5), (4, 3, 1, 1)),
        ("odd", {"padding": 1}, (2, 5, 31, 33), (7, 5, 3, 3)),
        ("stride", {"stride": (2, 3), "padding": (2, 1)}, (1, 3, 23, 19), (5, 3, 5, 3)),
        ("dilated", {"dilation": 2, "padding": 2}, (2, 3, 11, 13), (4, 3, 3, 3)),
        ("grouped", {"groups": 3, "stride": 2, "padding": 1}, (2, 6, 9, 7), (9, 2, 3, 3)),
        ("depthwise", {"groups": 7, "padding": 1}, (2, 7, 9, 8), (7, 1, 3, 3)),
        ("multiplied", {"groups": 5, "dilation": (2, 1)}, (1, 5, 9, 8), (10, 1, 3, 2)),
        ("one_pixel", {}, (1, 1, 1, 1), (1, 1, 1, 1)),
    ]
    cases = [
        Case(f"conv2d_{name}", partial(conv.conv2d, **how), partial(F.conv2d, **how),
             (x, w, (w[0],)))
        for name, how, x, w in shapes
    ]  # fmt: skip
    back: list[tuple[str, dict[str, Any], Any, Any]] = [
        ("plain", {}, (2, 3, 5, 7), (3, 4, 3, 3)),
        ("stride", {"stride": 2, "padding": 1, "output_padding": 1}, (2, 5, 7, 6), (5, 3, 3, 3)),
        ("uneven", {"stride": (3, 2), "padding": (0, 2), "output_padding": (2, 0)},
         (1, 3, 5, 7), (3, 2, 2, 5)),
        ("grouped", {"groups": 2, "stride": 2}, (2, 4, 5, 3), (4, 3, 3, 2)),
        ("dilated", {"dilation": (2, 3), "padding": 1}, (1, 2, 6, 7), (2, 3, 3, 2)),
    ]  # fmt: skip
    for name, how, x, w in back:
        bias = (w[1] * how.get("groups", 1),)
        ours, theirs = partial(conv.conv_transpose2d, **how), partial(F.conv_transpose2d, **how)
        cases.append(Case(f"conv_transpose2d_{name}", ours, theirs, (x, w, bias)))
    line: dict[str, Any] = {"stride": 2, "padding": 3, "dilation": 2, "groups": 2}
    ours, theirs = partial(conv.conv1d, **line), partial(F.conv1d, **line)
    cases.append(Case("conv1d", ours, theirs, ((2, 4, 33), (6, 2, 5), (6,))))
    sides = partial(conv.conv2d, padding=(1, 0, 2, 3))
    cases.append(Case("conv2d_sides", sides, lambda x, w: F.conv2d(F.pad(x, (0, 3, 1, 2)), w),
                      ((1, 2, 7, 9), (3, 2, 3, 3))))  # fmt: skip
    return cases


def pools() -> list[Case]:
    x = (2, 3, 17, 23)
    cases = []
    largest: list[dict[str, Any]] = [
        {"kernel": 2}, {"kernel": 3, "stride": 2, "padding": 1}, {"kernel": 1},
        {"kernel": (3, 2), "stride": (2, 3), "padding": 1, "ceil_mode": True},
        {"kernel": 3, "stride": 1, "dilation": 2, "padding": 1}, {"kernel": 2, "stride": 3},
    ]  # fmt: skip
    for how in largest:
        theirs = {("kernel_size" if k == "kernel" else k): v for k, v in how.items()}
        ours, reference = partial(pool.max_pool2d, **how), partial(F.max_pool2d, **theirs)
        cases.append(Case(f"max_pool2d_{how}", ours, reference, (x,)))
        if "dilation" in how:
            continue
        for include in (True, False):
            ours = partial(average.avg_pool2d, **how, count_include_pad=include)
            reference = partial(F.avg_pool2d, **theirs, count_include_pad=include)
            cases.append(Case(f"avg_pool2d_{how}_{include}", ours, reference, (x,)))
    for out in (1, (3, 5), (17, 2), (20, 30)):
        cases += [
            Case(f"adaptive_avg_pool2d_{out}", partial(average.adaptive_avg_pool2d, out_hw=out),
                 partial(F.adaptive_avg_pool2d, output_size=out), (x,)),
            Case(f"adaptive_max_pool2d_{out}", partial(pool.adaptive_max_pool2d, out_hw=out),
                 partial(F.adaptive_max_pool2d, output_size=out), (x,)),
        ]  # fmt: skip
    globally = Case("global_avg_pool2d", average.global_avg_pool2d,
                    lambda x: x.mean((2, 3), keepdim=True), (x,))  # fmt: skip
    return [*cases, globally]


def resizes() -> list[Case]:
    cases = []
    for out in ((31, 33), (14, 26), (3, 5), (7, 13), (1, 1)):
        x = (2, 3, 7, 13)
        cases.append(
            Case(f"nearest_{out}", partial(resize.upsample_nearest2d, out_hw=out),
                 partial(F.interpolate, size=out, mode="nearest"), (x,)))  # fmt: skip
        cases += [
            Case(f"bilinear_{out}_{corners}",
                 partial(resize.upsample_bilinear2d, out_hw=out, align_corners=corners),
                 partial(F.interpolate, size=out, mode="bilinear", align_corners=corners), (x,))
            for corners in (True, False)
        ]  # fmt: skip
    return cases


def norms() -> list[Case]:
    def train(x: Any, g: Any, b: Any) -> Any:
        return norm.batch_norm_train(x, g, b).y

    def batch(x: Any, g: Any, b: Any) -> Any:
        return F.batch_norm(x, None, None, g, b, training=True)

    cases = [
        Case(f"batch_norm_{x}", train, batch, (x, (x[1],), (x[1],)))
        for x in ((5, 3), (2, 7, 33), (3, 5, 4, 7), (2, 1, 3, 1))
    ]
    x = (3, 6, 5, 7)
    cases += [
        Case(
            "batch_norm_eval",
            lambda x, m, v, g, b: norm.batch_norm_eval(x, fixed(m), fixed(v), g, b),
            lambda x, m, v, g, b: F.batch_norm(x, m.detach(), v.detach(), g, b),
            (x, (6,), (6,), (6,), (6,)), 0.5, 2.0,
        ),
        Case("layer_norm", lambda x, g, b: norm.layer_norm(x, 33, g, b),
             lambda x, g, b: F.layer_norm(x, (33,), g, b), ((5, 3, 33), (33,), (33,))),
        Case("layer_norm_2", lambda x: norm.layer_norm(x, (5, 7)),
             lambda x: F.layer_norm(x, (5, 7)), (x,)),
        *(Case(f"group_norm_{n}", partial(lambda n, x, g, b: norm.group_norm(x, n, g, b), n),
               partial(lambda n, x, g, b: F.group_norm(x, n, g, b), n), (x, (6,), (6,)))
          for n in (1, 2, 6)),
        *(Case(f"lrn_{n}", lambda x, n=n: norm.local_response_norm(x, n, 0.3, 0.6, 2.0),
               lambda x, n=n: F.local_response_norm(x, n, 0.3, 0.6, 2.0), ((2, 7, 3, 5),))
          for n in (1, 2, 3, 5)),
    ]  # fmt: skip
    return cases


def losses() -> list[Case]:
    labels, spatial = ints(0, 7, 9), ints(0, 7, 4, 3, 5)
    ignored = np.where(np.arange(9) % 3 == 1, -100, labels)
    cases = []
    for how in ("mean", "sum", "none"):
        for smooth in (0.0, 0.1):
            for y, x in ((labels, (9, 7)), (spatial, (4, 7, 3, 5)), (ignored, (9, 7))):
                how_both: dict[str, Any] = {"label_smoothing": smooth, "reduction": how}
                both = partial(loss.cross_entropy, **how_both), partial(F.cross_entropy, **how_both)
                name = f"cross_entropy_{how}_{smooth}_{x}_{y.min()}"
                cases.append(Case(name, *both, (x, y), -30, 30))
        for name, a, b in (
            ("mse", loss.mse, F.mse_loss),
            ("l1", loss.l1, F.l1_loss),
            ("huber", partial(loss.huber, delta=0.7), partial(F.huber_loss, delta=0.7)),
            ("smooth_l1", partial(loss.smooth_l1, beta=0.7), partial(F.smooth_l1_loss, beta=0.7)),
            ("bce", loss.bce_with_logits, F.binary_cross_entropy_with_logits),
        ):
            both = partial(a, reduction=how), partial(b, reduction=how)
            cases.append(Case(f"{name}_{how}", *both, ((5, 33), (5, 33))))
    cases += [
        Case(f"cross_entropy_{dtype}", loss.cross_entropy,
             lambda x, y: F.cross_entropy(x, y.long()), ((9, 7), labels.astype(dtype)))
        for dtype in ("int32", "uint8")
    ]  # fmt: skip

    def theirs(x: Any, y: Any, p: Any) -> Any:
        return F.binary_cross_entropy_with_logits(x, y, pos_weight=p.detach())

    def ours(x: Any, y: Any, p: Any) -> Any:
        return loss.bce_with_logits(x, y, pos_weight=fixed(p))

    cases.append(Case("bce_pos_weight", ours, theirs, ((5, 3), (5, 3), (3,)), 0.1, 0.9))
    return cases


def sequences() -> list[Case]:
    t, n, c, h = 5, 3, 4, 7

    def theirs(kind: Any, gates: int) -> Any:
        def run(x: Any, *rest: Any) -> Any:
            *states, w, u, b, v = rest
            module = kind(c, h).double()
            del module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0, module.bias_hh_l0
            names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
            for name, value in zip(names, (w, u, b, v), strict=True):
                setattr(module, name, value)
            module._flat_weights = [w, u, b, v]
            first = [s[None] for s in states]
            y, last = module(x, first[0] if gates == 3 else tuple(first))
            return (y, last[0]) if gates == 3 else (y, last[0][0], last[1][0])

        return run

    def ours_lstm(x: Any, a: Any, b: Any, *weights: Any) -> Any:
        return recurrent.lstm(x, a, b, recurrent.Weights(*weights))

    def ours_gru(x: Any, a: Any, *weights: Any) -> Any:
        return recurrent.gru(x, a, recurrent.Weights(*weights))

    def weights(gates: int) -> Any:
        return (gates * h, c), (gates * h, h), (gates * h,), (gates * h,)

    def flipped(x: Any, a: Any, *weights: Any) -> Any:
        y, last = recurrent.gru(x, a, recurrent.Weights(*weights), reverse=True)
        return move.flip(y, 0), last

    def their_flipped(x: Any, *rest: Any) -> Any:
        return theirs(torch.nn.GRU, 3)(x.flip(0), *rest)

    return [
        Case("lstm", ours_lstm, theirs(torch.nn.LSTM, 4), ((t, n, c), (n, h), (n, h), *weights(4))),
        Case("gru", ours_gru, theirs(torch.nn.GRU, 3), ((t, n, c), (n, h), *weights(3))),
        Case("gru_reverse", flipped, their_flipped, ((t, n, c), (n, h), *weights(3))),
        Case("lstm_cell",
             lambda x, a, b, *w: recurrent.lstm_cell(x, a, b, recurrent.Weights(*w)),
             lambda x, a, b, *w: torch.lstm_cell(x, (a, b), *w),
             ((n, c), (n, h), (n, h), *weights(4))),
        Case("gru_cell", lambda x, a, *w: recurrent.gru_cell(x, a, recurrent.Weights(*w)),
             torch.gru_cell, ((n, c), (n, h), *weights(3))),
    ]  # fmt: skip


def attentions() -> list[Case]:
    ours, theirs = attention.scaled_dot_product_attention, F.scaled_dot_product_attention
    q, k, v = (2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4)
    allowed = RNG.integers(0, 3, (2, 1, 5, 7)) > 0
    allowed[..., 0] = True
    return [
        Case("attention", ours, theirs, (q, k, v)),
        Case("attention_scale", partial(ours, scale=0.3), partial(theirs, scale=0.3), (q, k, v)),
        Case("attention_causal", partial(ours, causal=True), partial(theirs, is_causal=True),
             (q, k, v)),
        Case("attention_bool", ours, theirs, (q, k, v, allowed)),
        Case("attention_added", ours, theirs, (q, k, v, (5, 7))),
    ]  # fmt: skip


def moves() -> list[Case]:
    index = ints(0, 7, 3, 9)
    return [
        Case("embedding", embed.embedding, lambda t, i: F.embedding(i, t), ((11, 5), index)),
        Case("gather", partial(embed.gather, axis=1), lambda x, i: x.gather(1, i), ((3, 7), index)),
        Case("matmul", linalg.matmul, torch.matmul, ((2, 1, 5, 33), (3, 33, 7))),
        Case("matmul_rows", linalg.matmul, torch.matmul, ((2, 3, 5), (5, 31))),
        Case("amax", lambda x: extremes.max_(x, (0, 2)), lambda x: x.amax((0, 2)), ((3, 5, 7),)),
        Case("mean", lambda x: extremes.mean(x, 1), lambda x: x.mean(1), ((3, 31, 2),)),
        Case("sum", lambda x: reduce.sum_(x, (1, 2)), lambda x: x.sum((1, 2)), ((3, 31, 2),)),
        Case("slice", lambda x: move.slice_(x, 1, 2, 30, 3), lambda x: x[:, 2:30:3], ((3, 31),)),
        Case("pad", lambda x: move.pad(x, ((0, 0), (2, 1))), lambda x: F.pad(x, (2, 1)), ((3, 5),)),
        Case("stack", lambda x, y: move.stack([x, y], 1), lambda x, y: torch.stack([x, y], 1),
             ((3, 5), (3, 5))),
        Case("split", lambda x: move.split(x, 3, 1), lambda x: x.split(3, 1), ((2, 8),)),
        Case("maximum", arithmetic.maximum, torch.maximum, ((3, 5), (5,))),
        Case("power", transcendental.power, torch.pow, ((3, 5), (5,)), 0.3, 2.0),
        Case("div", arithmetic.div, torch.div, ((3, 1, 5), (7, 1)), 0.5, 2.0),
    ]  # fmt: skip


FAMILIES = (
    activations, convolutions, pools, resizes, norms, losses, sequences, attentions, moves,
)  # fmt: skip


@pytest.mark.parametrize("case", [c for f in FAMILIES for c in f()], ids=lambda c: c.name)
def test_results_and_gradients_are_those_of_pytorch(case: Case) -> None:
    compare(case)


def test_running_statistics_are_those_of_pytorch() -> None:
    types = [TensorType(s, float64) for s in ((5, 3, 4), (3,), (3,))]
    arrays = [RNG.uniform(0.5, 2, t.shape) for t in types]

    def ours(x: Any, m: Any, v: Any) -> Any:
        return norm.running_statistics((m, v), norm.batch_norm_train(x), 0.1)

    graph = graph_from(ours, types)
    known = evaluate(graph, {f"x{i}": a for i, a in enumerate(arrays)})
    x, m, v = map(torch.tensor, arrays)
    F.batch_norm(x, m, v, training=True, momentum=0.1)
    for found, expected in zip(graph.outputs, (m, v), strict=True):
        assert_close(known[found], expected.numpy(), float64)


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
def test_weights_and_ignored_labels_leave_the_loss_of_the_rest(how: str) -> None:
    y = np.array([1, -100, 4, 2, 0, 6])
    kept = np.array([True, False, True, True, False, True])
    case = Case(
        "padded",
        lambda x, y, w: loss.cross_entropy(x, y, fixed(w), 0.1, reduction=how),
        lambda x, y, w: spread_out(
            F.cross_entropy(x[kept], y[kept], label_smoothing=0.1, reduction=how), kept, how
        ),
        ((6, 7), y, kept.astype("int32")),
    )
    compare(case)


def spread_out(values: Any, kept: Any, how: str) -> Any:
    if how != "none":
        return values
    return torch.zeros(len(kept), dtype=values.dtype).index_put((torch.tensor(kept),), values)
