"""Compositions where PyTorch has no counterpart, or where we promise more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate
from tests.helpers.gradcheck import check_gradient, gradient_graph, graph_from

from pocketgrad.base.dtypes import Array, dtype_of, float32, float64, int32
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType
from pocketgrad.ops.activation import elu, logsumexp, softmax, softplus
from pocketgrad.ops.attention import scaled_dot_product_attention
from pocketgrad.ops.embed import embedding, gather, one_hot
from pocketgrad.ops.loss import bad_label, cross_entropy, mse
from pocketgrad.ops.norm import batch_norm_train, layer_norm
from pocketgrad.ops.random import dropout
from pocketgrad.passes.autodiff import gradients


def run(function: Any, *arrays: Array) -> list[Array]:
    graph = graph_from(
        lambda *xs: [function(*xs)], [TensorType(a.shape, dtype_of(a)) for a in arrays]
    )
    known = evaluate(graph, {f"x{i}": a for i, a in enumerate(arrays)})
    return [known[v] for v in graph.outputs]


def slopes(function: Any, *arrays: Array) -> list[Array]:
    graph = gradient_graph(
        lambda *xs: [function(*xs)], [TensorType(a.shape, dtype_of(a)) for a in arrays]
    )
    feeds = {f"x{i}": a for i, a in enumerate(arrays)}
    seed = np.ones(graph.inputs[-1].shape, graph.inputs[-1].dtype.numpy)
    known = evaluate(graph, {**feeds, "seed": seed})
    return [known[v] for v in graph.outputs[1:]]


@pytest.mark.parametrize("function", [softplus, elu, softmax, logsumexp, layer_norm])
def test_large_inputs_neither_overflow_nor_spoil_the_gradient(function: Any) -> None:
    x = np.array([[-1e4, -200, 0, 200, 1e4]], np.float32)
    how = (lambda v: layer_norm(v, 5)) if function is layer_norm else function
    assert np.isfinite(run(how, x)[0]).all()
    assert np.isfinite(slopes(how, x)[0]).all()


def test_the_cross_entropy_of_huge_logits_is_exact() -> None:
    x = np.array([[1e6, 1e6 + 1]], np.float32)
    (found,) = run(cross_entropy, x, np.array([1], np.int32))
    assert found == pytest.approx(np.log1p(np.exp(-1)), rel=1e-6)


def test_a_batch_with_nothing_that_counts_has_loss_and_gradient_zero() -> None:
    x, y = np.ones((3, 4), np.float32), np.full(3, -100, np.int32)
    assert run(cross_entropy, x, y)[0] == 0
    assert not slopes(cross_entropy, x, y)[0].any()


def test_padding_of_weight_zero_leaves_loss_and_gradient_as_without() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((5, 3, 4)), rng.standard_normal((5, 3, 4))
    w = np.array([1, 1, 1, 0, 0], np.float64)

    def weighted(a: Any, b: Any) -> Any:
        from pocketgrad.ops.arithmetic import cast
        from pocketgrad.ops.compare import lt
        from pocketgrad.ops.source import iota

        return mse(a, b, cast(lt(iota((5,), 0), 3), float64))

    assert run(weighted, x, y)[0] == pytest.approx(run(mse, x[:3], y[:3])[0])
    padded, plain = slopes(weighted, x, y)[0], slopes(mse, x[:3], y[:3])[0]
    np.testing.assert_allclose(padded[:3], plain)
    assert not padded[w == 0].any()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [([0, 6, 3], 3), ([0, 7, 9], 1), ([-1, 2, 3], 0), ([3, -100, 7], 2), ([], 0)],
)
def test_bad_label_is_the_first_position_out_of_range(labels: list[int], expected: int) -> None:
    for dtype in ("int32", "int64"):
        (found,) = run(lambda y: bad_label(y, 7), np.array(labels, dtype))
        assert found.dtype == np.int32
        assert found == expected


def test_bad_label_of_spatial_labels_is_the_batch_position() -> None:
    labels = np.zeros((4, 2, 3), np.int32)
    labels[2, 1, 1] = 9
    assert run(lambda y: bad_label(y, 9), labels)[0] == 2


def test_batch_norm_gives_mean_and_biased_variance() -> None:
    x = np.random.default_rng(0).uniform(3, 5, (4, 3, 5, 2))
    graph = graph_from(batch_norm_train, [TensorType(x.shape, float64)])
    known = evaluate(graph, {"x0": x})
    _, average, variance = (known[v] for v in graph.outputs)
    np.testing.assert_allclose(average, x.mean((0, 2, 3)))
    np.testing.assert_allclose(variance, x.var((0, 2, 3)))


def test_the_gradient_of_batch_norm_is_the_slope() -> None:
    types = [TensorType(s, float64) for s in ((4, 3, 5), (3,), (3,))]
    rng = np.random.default_rng(5)
    feeds = {f"x{i}": rng.uniform(0.5, 2, t.shape) for i, t in enumerate(types)}
    check_gradient(lambda *xs: [batch_norm_train(*xs).y], types, feeds)


def test_dropout_keeps_the_mean_and_its_gradient_has_the_same_mask() -> None:
    x = np.ones((50, 40), np.float32)
    seed, step = np.array(3, np.int32), np.array(8, np.int32)

    def drop(v: Any, a: Any, b: Any) -> Any:
        return dropout(v, 0.3, a, b, stream=1)

    (y,) = run(drop, x, seed, step)
    assert np.mean(y == 0) == pytest.approx(0.3, abs=0.04)
    assert y.max() == pytest.approx(1 / 0.7)
    np.testing.assert_array_equal(slopes(drop, x, seed, step)[0], y)
    assert (run(drop, x, seed, np.array(9, np.int32))[0] != y).any()


@pytest.mark.parametrize(("p", "expected"), [(0.0, 1.0), (1.0, 0.0)])
def test_dropout_of_nothing_and_of_everything(p: float, expected: float) -> None:
    one = np.array(1, np.int32)
    (y,) = run(lambda v, a, b: dropout(v, p, a, b, 0), np.ones((3, 5), np.float32), one, one)
    assert (y == expected).all()


def test_attention_that_may_look_nowhere_gives_zero_and_no_nan() -> None:
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((3, 4)) for _ in range(3))
    mask = np.array([[True, False, True], [False] * 3, [True] * 3])
    out = run(scaled_dot_product_attention, q, k, v, mask)[0]
    assert not out[1].any()
    assert all(np.isfinite(g).all() for g in slopes(scaled_dot_product_attention, q, k, v, mask))


def test_one_hot_puts_the_new_axis_anywhere() -> None:
    index = np.array([[0, 2, 1], [3, 9, -1]], np.int32)
    (last,) = run(lambda i: one_hot(i, 4), index)
    np.testing.assert_array_equal(last[0], np.eye(4, dtype=np.float32)[index[0]])
    assert not last[1, 1:].any()
    (first,) = run(lambda i: one_hot(i, 4, int32, axis=0), index)
    np.testing.assert_array_equal(first, np.moveaxis(last, -1, 0))


def test_an_index_out_of_range_reads_zero_and_receives_nothing() -> None:
    table, index = np.ones((3, 2)), np.array([0, 3, -1, 2, 2], np.int64)
    (rows,) = run(embedding, table, index)
    np.testing.assert_array_equal(rows[:, 0], [1, 0, 0, 1, 1])
    np.testing.assert_array_equal(slopes(embedding, table, index)[0][:, 0], [1, 0, 2])
    line = np.arange(1.0, 4.0)
    (found,) = run(lambda x, i: gather(x, i, 0), line, index)
    np.testing.assert_array_equal(found, [1, 0, 0, 3, 3])


def test_nothing_is_differentiated_beyond_detach() -> None:
    from pocketgrad.ops.arithmetic import detach, mul

    with Builder() as builder:
        x = builder.input(TensorType((), float32), "x")
        (grad,) = gradients(builder, mul(detach(x), x), [x])
        assert grad is not None
        graph = builder.graph([grad])
    assert evaluate(graph, {"x": np.array(3, np.float32)})[grad] == 3
