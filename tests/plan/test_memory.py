"""Lifetimes to offsets: whatever the lifetimes, values alive together never share a byte."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.plan_oracle import audit_placement

from pocketgrad.ir.core import TensorType, Value
from pocketgrad.plan.memory import Lifetime, place


def _value(i: int) -> Value:
    return Value(TensorType(()), f"v{i}")


@st.composite
def lifetimes(draw: st.DrawFn) -> dict[Value, Lifetime]:
    found = {}
    for i in range(draw(st.integers(0, 12))):
        first = draw(st.integers(0, 10))
        last = first + draw(st.integers(0, 6))
        nbytes = draw(st.sampled_from([1, 4, 63, 64, 65, 128, 1000]))
        found[_value(i)] = Lifetime(nbytes, first, last)
    return found


@given(lifetimes(), st.sampled_from([64, 128]), st.randoms(use_true_random=False))
def test_values_alive_together_do_not_overlap(lives, align, random) -> None:
    heirs = [(v, w) for v in lives for w in lives if lives[v].last == lives[w].first and v is not w]
    random.shuffle(heirs)
    placed = place(lives, heirs, align)
    audit_placement(lives, heirs, placed, align)
    assert placed.nbytes % align == 0
    assert placed.nbytes <= sum(-(-life.nbytes // align) * align for life in lives.values())


@given(lifetimes())
def test_the_arena_is_no_smaller_than_what_is_alive_at_once(lives) -> None:
    alive = [
        sum(life.nbytes for life in lives.values() if life.first <= i <= life.last)
        for i in range(20)
    ]
    assert place(lives).nbytes >= max(alive)


@given(lifetimes())
def test_equal_lifetimes_give_equal_offsets(lives) -> None:
    assert place(lives).offsets == place(dict(lives)).offsets


def test_a_chain_in_place_needs_the_memory_of_one() -> None:
    values = [_value(i) for i in range(5)]
    lives = {v: Lifetime(1000, i, i + 1) for i, v in enumerate(values)}
    heirs = list(pairwise(values))
    assert place(lives, heirs).nbytes == 1024
    assert place(lives).nbytes == 2048


def test_only_one_of_two_heirs_inherits() -> None:
    old, a, b = (_value(i) for i in range(3))
    lives = {old: Lifetime(64, 0, 1), a: Lifetime(64, 1, 2), b: Lifetime(64, 1, 2)}
    placed = place(lives, [(old, a), (old, b)])
    audit_placement(lives, [(old, a), (old, b)], placed, 64)
    assert placed.nbytes == 128


def test_nothing_needs_no_arena() -> None:
    assert place({}).nbytes == 0
