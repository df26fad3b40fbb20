"""A view is what NumPy's strides say, after any chain of view ops."""

from __future__ import annotations

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from tests.helpers.random_graphs import shapes, view_chains

from pocketgrad.base.dtypes import Array
from pocketgrad.ir.core import Op, TensorType, Value
from pocketgrad.plan.views import View, last, through, whole


def shown(view: View, memory: Array) -> Array:
    """The array a view shows of its base's elements."""
    if 0 in view.shape:
        return np.empty(view.shape, memory.dtype)
    low, high = view.span
    assert 0 <= low < high <= memory.size
    strides = tuple(s * memory.itemsize for s in view.strides)
    return as_strided(memory[view.offset :], view.shape, strides)


@given(shapes(), st.data())
def test_a_chain_of_views_shows_what_its_ops_mean(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    chain: list[Op] = data.draw(view_chains(shape))
    note(repr(chain))
    base = Value(TensorType(shape), "x")
    memory = np.arange(base.type.size, dtype=np.float32)
    view, expected = whole(base), memory.reshape(shape)
    for op in chain:
        seen = through(op, view)
        (expected,) = op.ref(expected)
        if seen is None:  # only a reshape of scattered elements may refuse
            assert op.label() == "reshape"
            assert not view.dense
            break
        view = seen
        assert view.shape == expected.shape
        np.testing.assert_array_equal(shown(view, memory), expected)


@given(shapes(), st.data())
def test_a_reshape_refuses_only_where_numpy_would_copy(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    chain: list[Op] = data.draw(view_chains(shape))
    base = Value(TensorType(shape), "x")
    memory = np.arange(base.type.size, dtype=np.float32)
    view = whole(base)
    for op in chain:
        seen = through(op, view)
        if op.label() == "reshape" and view.base.type.size > 1:
            array = shown(view, memory)
            reshaped = array.reshape(op.attributes()["shape"])
            if seen is None:
                assert not np.shares_memory(reshaped, memory)
        if seen is None:
            break
        view = seen


def test_dense_means_row_major_without_gaps() -> None:
    base = Value(TensorType((4, 6)), "x")
    assert whole(base).dense
    assert not View(base, 0, (4, 3), (6, 1)).dense
    assert View(base, 6, (1, 3), (99, 1)).dense
    assert View(base, 0, (0, 3), (5, 5)).dense
    assert not View(base, 5, (6,), (-1,)).dense


def test_images_are_known_to_lie_channels_last() -> None:
    value = Value(TensorType((2, 5, 3, 4)), "x")
    assert last(value).pitch == 5
    assert last(value, 7).pitch == 7
    assert last(value).span == (0, 120)
    assert whole(value).pitch is None
    assert whole(Value(TensorType((2, 5, 1, 1)), "pooled")).pitch == 5
    assert whole(Value(TensorType((2, 1, 3, 4)), "grey")).pitch == 1
    assert whole(Value(TensorType((10, 5)), "flat")).pitch is None
