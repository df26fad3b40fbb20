"""Energy, wraps and utilisation: small cases by hand, and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketgrad.base.errors import SettingError
from pocketgrad.telemetry.energy import (
    average_utilisation,
    grown,
    grown_between,
    held_between,
    held_j,
    idle_state_ratio,
    paper_eq4_j,
    trapezoid_j,
    utilisation,
)
from pocketgrad.trace.counting import unwrapped
from pocketgrad.trace.model import Channel, Kind, Series

S = 1_000_000_000


def times(*seconds: float):
    return np.array([round(s * S) for s in seconds], np.int64)


def series(seconds, values, wraps_at: float | None = None) -> Series:
    channel = Channel("e", "energy", Kind.CUMULATIVE, "x", "x", wraps_at=wraps_at)
    return Series(channel, times(*seconds), np.array(values, float))


def test_the_three_sums_of_uneven_samples() -> None:
    """2, 4 and 4 W at 0, 1 and 3 s: 3 + 8 J linear, 2 + 8 J held, 1 s × 10 W by equation 4."""
    t_ns, watts = times(0, 1, 3), np.array([2.0, 4.0, 4.0])
    assert trapezoid_j(t_ns, watts) == pytest.approx(11.0)
    assert held_j(t_ns, watts) == pytest.approx(10.0)
    assert paper_eq4_j(S, watts.tolist()) == pytest.approx(10.0)


@pytest.mark.parametrize("count", [0, 1])
def test_less_than_two_samples_span_no_time(count: int) -> None:
    t_ns, watts = times(*range(count)), np.ones(count)
    assert trapezoid_j(t_ns, watts) == held_j(t_ns, watts) == 0.0
    assert held_between(t_ns, watts, 0, S) is None


def test_a_window_takes_its_part_and_none_that_is_not_covered() -> None:
    t_ns, watts = times(0, 1, 3), np.array([2.0, 4.0, 6.0])
    assert held_between(t_ns, watts, 0.5 * S, 2 * S) == pytest.approx(5 * S)
    assert held_between(t_ns, watts, 0.2 * S, 0.3 * S) == pytest.approx(0.2 * S)
    assert held_between(t_ns, watts, 2 * S, 4 * S) is None
    assert held_between(t_ns, watts, -1, S) is None


def test_a_wrap_of_the_rapl_counter() -> None:
    """262143300000 then 21150 of a range of 262143328850 µJ: 50000 µJ."""
    package = series([0, 1], [262143300000.0, 21150.0], wraps_at=262143328850.0)
    assert grown(package) == 50_000


def test_a_restart_is_no_wrap() -> None:
    """From a tenth of the range back to 0 would be 0.9 of the range in one step: not believed."""
    assert grown(series([0, 1, 2], [100.0, 0.0, 5.0], wraps_at=1000.0)) == 5.0


def test_a_counter_without_a_range_counts_new_maxima_only() -> None:
    assert unwrapped(np.array([10.0, 15.0, 14.0, 16.0]), None).tolist() == [0, 5, 5, 6]


def test_growth_within_a_window_is_linear_between_changes() -> None:
    counter = series([0, 1, 2], [0.0, 10.0, 30.0])
    assert grown_between(counter, 0.5 * S, 1.5 * S) == pytest.approx(15.0)
    assert grown_between(counter, 1.5 * S, 2.5 * S) is None


@given(steps=st.lists(st.integers(0, 400), min_size=1, max_size=40), start=st.integers(0, 999))
def test_any_growth_of_less_than_half_the_range_per_read_survives_wrapping(steps, start) -> None:
    total = start + np.concatenate(([0], np.cumsum(steps)))
    assert unwrapped((total % 1000).astype(float), 1000.0)[-1] == sum(steps)


@given(
    gaps=st.lists(st.integers(1, 10**9), min_size=2, max_size=20),
    cut=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_parts_of_a_window_add_up_to_the_whole(gaps, cut, seed) -> None:
    """The sum over operations equals the integral of the samples."""
    t_ns = np.concatenate(([0], np.cumsum(gaps))).astype(np.int64)
    watts = np.random.default_rng(seed).uniform(0, 50, len(t_ns))
    end = int(t_ns[-1])
    middle = cut * end
    whole = held_between(t_ns, watts, 0, end)
    parts = [held_between(t_ns, watts, 0, middle), held_between(t_ns, watts, middle, end)]
    assert whole is not None
    assert None not in parts
    assert sum(p for p in parts if p is not None) == pytest.approx(whole, rel=1e-9, abs=1e-6)
    assert whole / S == pytest.approx(held_j(t_ns, watts), rel=1e-9)


def test_utilisation_of_the_documented_states_of_proc_stat() -> None:
    """cpu0: +2 busy and +33 idle ticks; cpu4: +3 and +33."""
    cores = [utilisation(2, 33), utilisation(3, 33)]
    assert cores == [pytest.approx(5.714, abs=1e-3), pytest.approx(8.333, abs=1e-3)]
    assert average_utilisation([c for c in cores if c is not None]) == pytest.approx(
        7.024, abs=1e-3
    )


def test_no_time_passed_is_no_utilisation_and_iowait_may_decrease() -> None:
    assert utilisation(0, 0) is None
    assert utilisation(5, -1) == 100.0
    assert average_utilisation([]) is None


def test_the_idle_state_ratio_is_the_share_of_samples_at_zero() -> None:
    assert idle_state_ratio([0, 0, 100, 50]) == 50.0
    assert idle_state_ratio([]) is None


def test_times_that_go_back_or_do_not_fit_are_refused() -> None:
    with pytest.raises(SettingError, match="CLOCK_MONOTONIC"):
        held_j(times(1, 0), np.ones(2))
    with pytest.raises(SettingError, match="2 times and 3 values"):
        trapezoid_j(times(0, 1), np.ones(3))
