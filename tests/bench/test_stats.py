"""Statistics, by properties."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from pocketgrad.bench.stats import geometric_mean, ratio, spread

values = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30)


@given(values)
def test_quartiles_lie_in_order_within_the_values(found: list[float]) -> None:
    s = spread(found)
    assert min(found) <= s.low <= s.median <= s.high <= max(found)
    assert s.count == len(found)


@given(values, values)
def test_a_ratio_lies_within_its_interval_and_that_within_the_extremes(
    slow: list[float], fast: list[float]
) -> None:
    r = ratio(slow, fast)
    assert r.low <= r.value <= r.high
    assert r.low >= min(slow) / max(fast) * (1 - 1e-9)
    assert r.high <= max(slow) / min(fast) * (1 + 1e-9)


@given(values, st.floats(0.01, 100))
def test_a_ratio_scales_with_its_numerator(found: list[float], factor: float) -> None:
    scaled = ratio([v * factor for v in found], found).value
    assert math.isclose(scaled, factor, rel_tol=1e-9)


def test_equal_steady_values_leave_no_doubt() -> None:
    assert ratio([2.0] * 9, [1.0] * 9) == ratio([2.0] * 5, [1.0] * 5)
    assert (ratio([2.0] * 9, [1.0] * 9).low, ratio([2.0] * 9, [1.0] * 9).high) == (2.0, 2.0)


def test_twice_and_half_have_mean_one() -> None:
    assert math.isclose(geometric_mean([2.0, 0.5]), 1.0)
