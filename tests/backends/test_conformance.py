"""Every op, every sample, on every backend: planned, in a poisoned arena, what ``ref`` says.

Adding an op adds no code here.
"""

from __future__ import annotations

import pytest
from tests.helpers.conformance import backward, check, forward, in_half

from pocketgrad.backends.api import Backend
from pocketgrad.base.dtypes import float32
from pocketgrad.ir.core import Op, Sample
from pocketgrad.ops import ALL

EVERY = pytest.mark.parametrize("op", ALL, ids=lambda op: op.label())


def _has_floats(op: type[Op]) -> bool:
    return any(t.dtype is float32 for s in op.samples() for t in s.ins)


def _size(sample: Sample) -> int:
    return sum(t.size for t in (*sample.ins, *sample.op.infer(*sample.ins)))


@EVERY
def test_every_sample_gives_what_its_op_means(op: type[Op], backend: Backend) -> None:
    check(forward(list(op.samples())), backend)


@pytest.mark.parametrize("op", [*filter(_has_floats, ALL)], ids=lambda op: op.label())
def test_large_samples_stored_in_half_give_what_their_op_means(
    op: type[Op], backend: Backend
) -> None:
    """Two of each op: what differs from float32 is loading and storing, whole vectors and rests."""
    check(forward(in_half(sorted(op.samples(), key=_size)[-2:])), backend)


@pytest.mark.parametrize("op", [op for op in ALL if op.has_gradient], ids=lambda op: op.label())
def test_gradients_of_every_sample_are_what_their_graph_means(
    op: type[Op], backend: Backend
) -> None:
    check(backward(list(op.samples())), backend)
