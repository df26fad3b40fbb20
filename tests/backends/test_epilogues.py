"""Elementwise work behind products and convolutions, on registers named as the templates like."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate
from tests.helpers.tolerance import assert_close

from pocketgrad.backends.api import Backend
from pocketgrad.base.dtypes import float32
from pocketgrad.engine.compile import compile_graph
from pocketgrad.ir.build import Builder, emit
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.conv import Conv2d
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.transcendental import relu


def product(builder: Builder, transposed: bool, size: int) -> tuple[Value, Value]:
    a = builder.input(TensorType((size, 64)), "a")
    b = builder.input(TensorType((4 * size, 64) if transposed else (64, 4 * size)), "b")
    bias = builder.input(TensorType((4 * size,)), "bias")
    return matmul(a, b, transpose_b=transposed), bias


def convolution(builder: Builder, taps: int, channels: int) -> tuple[Value, Value]:
    x = builder.input(TensorType((2, channels, 15, 15)), "x")
    w = builder.input(TensorType((channels, channels, taps, taps)), "w")
    bias = builder.input(TensorType((1, channels, 1, 1)), "bias")
    pad = (taps // 2,) * 4
    return emit(Conv2d((1, 1), pad, (1, 1), 1), x, w), bias


ROOTS = {
    "product": lambda b: product(b, transposed=False, size=24),
    "product by transposed": lambda b: product(b, transposed=True, size=24),
    "large product": lambda b: product(b, transposed=True, size=200),
    "convolution": lambda b: convolution(b, 3, 24),
    "convolution of one tap": lambda b: convolution(b, 1, 24),
    "convolution in Winograd's domain": lambda b: convolution(b, 3, 64),
}


@pytest.mark.parametrize("root", ROOTS)
def test_bias_residual_and_activation_join_a_kernel(root: str, backend: Backend) -> None:
    with Builder() as builder:
        made, bias = ROOTS[root](builder)
        residual = builder.input(made.type, "residual")
        graph = builder.graph([relu(add(residual, add(made, bias)))])
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in graph.inputs}
    executable = compile_graph(graph, backend, poison=True)
    executable.run(feeds)
    (out,) = graph.outputs
    # Winograd's transforms multiply rounding by about ten, as if a hundred times more were added.
    terms = 64 * 9 * 100
    assert_close(executable.read(out.name), evaluate(graph, feeds)[out], float32, terms)
