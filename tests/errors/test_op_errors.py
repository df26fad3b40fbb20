"""Each mistake with an operation has a message that says what was found and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pocketgrad.base.dtypes import DType, bool_, float32, int32
from pocketgrad.base.errors import (
    DtypeError,
    GraphError,
    NoGradientError,
    PocketgradError,
    SettingError,
    ShapeError,
)
from pocketgrad.ir.build import Builder, emit
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.ops import (
    activation,
    arithmetic,
    attention,
    average,
    compare,
    conv,
    embed,
    extremes,
    linalg,
    loss,
    move,
    norm,
    pool,
    random,
    recurrent,
    reduce,
    resize,
    source,
    transcendental,
)
from pocketgrad.passes.autodiff import gradients

_names = iter(range(10**6))


def v(*shape: int, dtype: DType = float32) -> Value:
    return Value(TensorType(shape, dtype), f"v{next(_names)}")


def i(*shape: int) -> Value:
    return v(*shape, dtype=int32)


Mistake = tuple[Callable[[], Any], type[PocketgradError], str]

MISTAKES: dict[str, Mistake] = {
    "shapes that do not broadcast": (
        lambda: arithmetic.add(v(2, 3), v(4)), ShapeError,
        r"add: shapes \(2, 3\) and \(4,\) do not broadcast; sizes must be equal or 1"),
    "two element types": (
        lambda: arithmetic.mul(v(3), i(3)), DtypeError,
        r"different element types: float32\[3\] and int32\[3\]; cast\(\) one of them"),
    "a float function of integers": (
        lambda: transcendental.exp(i(3)), DtypeError, r"exp: is defined on floats.*cast\(\)"),
    "a fraction as an integer": (
        lambda: arithmetic.add(i(3), 0.5), DtypeError, r"0\.5 is not a int32; cast\(\)"),
    "a condition that is no bool": (
        lambda: compare.where(v(3), v(3), v(3)), DtypeError, r"must be bool.*compare first"),
    "logic on floats": (
        lambda: compare.logical_and(v(3), v(3)), DtypeError, r"defined on bool.*compare first"),
    "numbers alone": (lambda: arithmetic.add(1, 2), DtypeError, "at least one symbolic value"),
    "inner sizes": (
        lambda: linalg.matmul(v(2, 3), v(4, 5)), ShapeError,
        r"inner sizes 3 and 4 of float32\[2,3\] and float32\[4,5\] differ"),
    "leading axes": (
        lambda: linalg.matmul(v(2, 3, 4), v(3, 4, 5)), ShapeError, "do not broadcast"),
    "a vector in a matrix product": (
        lambda: linalg.matmul(v(3), v(3, 4)), ShapeError, "two axes or more"),
    "a view of another size": (
        lambda: move.reshape(v(2, 3), (4, 2)), ShapeError,
        r"cannot view float32\[2,3\] as \(4, 2\): 6 elements, not 8"),
    "a view that does not divide": (
        lambda: move.reshape(v(7), (2, -1)), ShapeError, r"cannot view float32\[7\] as \(2, -1\)"),
    "an axis that is not there": (
        lambda: reduce.sum_(v(2, 3), 2), ShapeError, "axis 2 does not exist in a value of 2 axes"),
    "a range outside": (
        lambda: emit(move.Slice((0,), (9,), (1,)), v(5)), ShapeError,
        r"\[0:9:1\] on axis 0 leaves float32\[5\]"),
    "joined shapes": (
        lambda: move.concat([v(2, 3), v(2, 4)], 0), ShapeError, "concat"),
    "nothing joined": (lambda: move.concat([]), ShapeError, "nothing to join"),
    "parts that do not add up": (
        lambda: move.split(v(5), [2, 2]), ShapeError, r"parts of \[2, 2\] do not add up to 5"),
    "a sum of bytes": (
        lambda: reduce.sum_(v(3, dtype=bool_)), DtypeError,
        r"cannot reduce bool\[3\]; cast\(\)"),
    "a mean of nothing": (lambda: extremes.mean(v(0, 3), 0), ShapeError, "over no elements"),
    "channels of a weight": (
        lambda: conv.conv2d(v(1, 3, 8, 8), v(4, 2, 3, 3)), ShapeError,
        r"input \(1, 3, 8, 8\) and weight \(4, 2, 3, 3\) with groups=1 do not fit"),
    "a kernel larger than the image": (
        lambda: conv.conv2d(v(1, 3, 2, 8), v(4, 3, 3, 3)), ShapeError,
        "kernel of 3 with dilation 1 does not fit into size 2 .* height; use a smaller kernel"),
    "an image without batch": (
        lambda: conv.conv2d(v(3, 8, 8), v(4, 3, 3, 3)), ShapeError,
        r"takes \[batch, channels, height, width\], got float32\[3,8,8\]; reshape\(\)"),
    "an image of integers": (
        lambda: conv.conv2d(i(1, 3, 8, 8), v(4, 3, 3, 3)), DtypeError, r"floats of one type.*cast"),
    "a stride of 0": (
        lambda: conv.conv2d(v(1, 3, 8, 8), v(4, 3, 3, 3), stride=0), ShapeError,
        "must be at least 1"),
    "three strides": (
        lambda: conv.conv2d(v(1, 3, 8, 8), v(4, 3, 3, 3), stride=(1, 1, 1)), ShapeError,
        "one number, or one for height and one for width"),
    "a bias of the wrong length": (
        lambda: conv.conv2d(v(1, 3, 8, 8), v(4, 3, 3, 3), v(3)), ShapeError,
        r"has shape \(4,\), got float32\[3\]"),
    "output padding": (
        lambda: conv.conv_transpose2d(v(1, 3, 8, 8), v(3, 4, 3, 3), output_padding=1), ShapeError,
        "output_padding .* smaller than stride"),
    "a window in the padding": (
        lambda: pool.max_pool2d(v(1, 3, 8, 8), 2, padding=2), ShapeError,
        "reads no element .* use less padding or a larger kernel"),
    "a pool of nothing": (
        lambda: average.adaptive_avg_pool2d(v(1, 3, 8, 8), 0), ShapeError, "is empty"),
    "a float index": (
        lambda: embed.embedding(v(5, 3), v(2)), DtypeError, r"int32 or int64.*cast\(\)"),
    "an index of other sizes": (
        lambda: embed.gather(v(5, 3), i(4, 3), 1), ShapeError, "differ in more than axis 1"),
    "a resize to nothing": (
        lambda: resize.resize(v(5), 0, 0), ShapeError,
        r"cannot resize axis 0 of float32\[5\] to 0"),
    "a mode that is none": (
        lambda: resize.resize(v(5), 0, 7, "cubic"), SettingError,
        "mode 'cubic' is none of nearest, linear"),
    "labels of another batch": (
        lambda: loss.cross_entropy(v(4, 7), i(5)), ShapeError,
        r"logits \[N, classes, …\] and labels \[N, …\], got float32\[4,7\] and int32\[5\]"),
    "labels that are floats": (
        lambda: loss.cross_entropy(v(4, 7), v(4)), DtypeError, r"labels are integers.*cast\(\)"),
    "too much smoothing": (
        lambda: loss.cross_entropy(v(4, 7), i(4), label_smoothing=1.0), SettingError, "below 1"),
    "a reduction that is none": (
        lambda: loss.mse(v(4), v(4), reduction="max"), SettingError,
        "'max' is none of mean, sum, none"),
    "a target of another shape": (
        lambda: loss.mse(v(4, 1), v(4)), ShapeError, r"prediction float32\[4,1\] and target"),
    "a weight per element": (
        lambda: loss.mse(v(4, 2), v(4, 2), v(2)), ShapeError, "one number per sample"),
    "huber's delta": (lambda: loss.huber(v(4), v(4), delta=0), SettingError, "above 0"),
    "statistics of one value": (
        lambda: norm.batch_norm_train(v(1, 3)), ShapeError,
        "more than one value per channel.*larger batch, or eval mode"),
    "layer norm of other axes": (
        lambda: norm.layer_norm(v(4, 7), 5), ShapeError, r"over \(5,\) does not fit the last axes"),
    "groups that do not divide": (
        lambda: norm.group_norm(v(2, 6, 3), 4), ShapeError, "not a multiple of 4 groups"),
    "norm of a vector": (
        lambda: norm.batch_norm_train(v(5)), ShapeError, r"\[batch, channels, …\]"),
    "no neighbours": (lambda: norm.local_response_norm(v(2, 3), 0), ShapeError, "at least 1"),
    "a gate too few": (
        lambda: recurrent.gru_cell(v(2, 3), v(2, 5), recurrent.Weights(v(20, 3), v(20, 5))),
        ShapeError, r"3 gates take weights \(15, 3\) and \(15, 5\), got \(20, 3\)"),
    "no steps": (
        lambda: recurrent.gru(v(0, 2, 3), v(2, 5), recurrent.Weights(v(15, 3), v(15, 5))),
        ShapeError, "at least one step"),
    "keys of another width": (
        lambda: attention.scaled_dot_product_attention(v(2, 3), v(4, 5), v(4, 5)), ShapeError,
        r"takes q \[...,L,E\] and k \[...,S,E\]"),
    "values without keys": (
        lambda: attention.scaled_dot_product_attention(v(2, 3), v(4, 3), v(5, 3)), ShapeError,
        "differ in number"),
    "a probability above 1": (
        lambda: random.dropout(v(3), 1.5, i(), i(), 0), SettingError, "between 0 and 1, got 1.5"),
    "a seed that is no integer": (
        lambda: random.dropout(v(3), 0.5, v(), i(), 0), DtypeError,
        "seed and the step, both int32"),
    "no bound": (
        lambda: activation.clip(v(3)), SettingError, "got no bound; give low, high or both"),
    "a gelu that is none": (
        lambda: activation.gelu(v(3), "fast"), SettingError, "'none' or 'tanh', not 'fast'"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_what_to_do(mistake: Mistake) -> None:
    make, error, message = mistake
    with Builder(), pytest.raises(error, match=message):
        make()


def test_the_layer_is_named() -> None:
    said = pytest.raises(ShapeError, match=r"mat_mul in net\.fc1: inner sizes")
    with said, Builder() as builder, builder.scope("net"), builder.scope("fc1"):
        linalg.matmul(v(2, 3), v(4, 5))


def test_an_op_outside_of_a_builder_says_where_it_belongs() -> None:
    with pytest.raises(GraphError, match=r"inside a module's forward\(\)"):
        arithmetic.neg(v(3))


def test_a_gradient_of_many_numbers_asks_for_one() -> None:
    with Builder() as builder:
        x = builder.input(TensorType((3,)), "x")
        with pytest.raises(ShapeError, match=r"needs a scalar loss, got float32\[3\]; average it"):
            gradients(builder, arithmetic.neg(x), [x])


def test_a_gradient_through_an_op_without_one_names_op_and_layer() -> None:
    grad = pool.MaxPool2dGrad((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False, (4, 4))
    with Builder() as builder:
        x = builder.input(TensorType((1, 1, 2, 2)), "x")
        with builder.scope("pool1"):
            y = emit(grad, source.constant(0, int32, (1, 1, 2, 2)), x)
        with pytest.raises(NoGradientError, match=r"max_pool2d_grad .*detach\(\).* 'pool1'"):
            gradients(builder, reduce.sum_(y), [x])
