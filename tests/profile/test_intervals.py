"""Intervals in time, by hand and against counting every nanosecond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketgrad.profile.intervals import (
    Tiles,
    common,
    covered,
    holes,
    overlaps,
    run_lengths,
    shared_growth,
    union,
)

END = 40
PAIRS = st.lists(
    st.tuples(st.integers(0, END), st.integers(0, END)).map(lambda p: (min(p), max(p))),
    max_size=8,
)


def columns(pairs):
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def counted(pairs) -> set[int]:
    """Every nanosecond that some interval covers."""
    return {t for low, high in pairs for t in range(low, high)}


@given(PAIRS)
def test_a_union_is_the_same_time_in_order_and_apart(pairs) -> None:
    starts, ends = union(*columns(pairs))
    assert counted(zip(starts, ends, strict=True)) == counted(pairs)
    assert (starts[1:] > ends[:-1]).all()


@given(PAIRS, st.integers(0, END))
def test_covered_time_before_a_moment(pairs, at) -> None:
    found = covered(*union(*columns(pairs)), np.array([at]))
    assert found[0] == len([t for t in counted(pairs) if t < at])


@given(PAIRS, PAIRS)
def test_holes_and_common_time_divide_the_windows(windows, busy) -> None:
    whole, taken = union(*columns(windows)), union(*columns(busy))
    left = counted(zip(*holes(whole, taken), strict=True))
    both = counted(zip(*common(whole, taken), strict=True))
    assert left == counted(windows) - counted(busy)
    assert both == counted(windows) & counted(busy)


@given(PAIRS)
def test_what_grew_is_divided_between_those_that_run_and_nothing_is_lost(pairs) -> None:
    """One joule per nanosecond: the sum is the covered time, however many run at once."""
    starts, ends = columns(pairs)
    tiles = Tiles.of(starts, ends, np.arange(len(starts)))
    grown = shared_growth(tiles, np.array([0, END]), np.array([0.0, END]))
    assert grown.sum() == pytest.approx(len(counted(pairs)))


def test_two_that_run_at_once_get_half_each() -> None:
    tiles = Tiles.of(np.array([0, 10]), np.array([20, 30]), np.array([0, 1]))
    assert tiles.overlap
    grown = shared_growth(tiles, np.array([0, 30]), np.array([0.0, 60.0]))
    assert grown.tolist() == [30.0, 30.0]


@given(PAIRS)
def test_overlaps_with_windows_are_counted(pairs) -> None:
    starts, ends = columns(pairs)
    rows = np.arange(len(pairs)) % 3
    windows = (np.array([0, 7, 20]), np.array([5, 20, 33]))
    found = overlaps(Tiles.of(starts, ends, rows), windows, 3)
    for w, (low, high) in enumerate(zip(*windows, strict=True)):
        for row in range(3):
            expected = sum(
                len(set(range(a, b)) & set(range(low, high)))
                for (a, b), r in zip(pairs, rows, strict=True)
                if r == row
            )
            assert found[w, row] == expected


def test_runs_of_one_column_count_as_one_if_nothing_is_between() -> None:
    """Rows 0 and 1 are column 0: 10 + 20 without a break, then 10 after row 2."""
    tiles = Tiles.of(np.array([0, 10, 30, 40]), np.array([10, 30, 40, 50]), np.array([0, 1, 2, 0]))
    lengths, count = run_lengths(tiles, np.array([0, 0, 1]), 2)
    assert count.tolist() == [2, 1]
    assert lengths.tolist() == [(30 * 30 + 10 * 10) / 40, 10]
