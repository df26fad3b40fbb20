"""Counters as rates, cores as shares, long series thinner: small cases by hand, and properties."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketgrad.report.curves import Curve, cores, curve, mean_of, time_mean
from pocketgrad.trace.model import Channel, Kind, Series, Trace

MS = 1_000_000


def series(name: str, quantity: str, kind: Kind, t_ms, values, **more) -> Series:
    t_ns = (np.asarray(t_ms, float) * MS).astype(np.int64)
    channel = Channel(name, quantity, kind, "x", "/made/up", **more)
    return Series(channel, t_ns, np.asarray(values, float))


def line(t, values, end, name="a") -> Curve:
    return Curve(name, "%", "x", np.asarray(t, np.int64), np.asarray(values, float), end)


@pytest.mark.parametrize(
    ("quantity", "values", "wraps_at", "unit", "rates"),
    [
        ("energy", [1.0, 1.02, 1.05], None, "W", [2.0, 3.0]),
        ("energy", [9.99, 0.01, 0.04], 10.0, "W", [2.0, 3.0]),
        ("time", [0, 5 * MS, 15 * MS], None, "%", [50.0, 100.0]),
        ("bytes", [0, 1000, 1000], None, "B/s", [1e5, 0.0]),
        ("count", [7, 8, 10], None, "1/s", [100.0, 200.0]),
    ],
)
def test_a_counter_becomes_its_growth_per_second(quantity, values, wraps_at, unit, rates) -> None:
    counted = series("c", quantity, Kind.CUMULATIVE, [0, 10, 20], values, wraps_at=wraps_at)
    found = curve(counted)
    assert found.unit == unit
    assert found.values == pytest.approx(rates)
    assert (found.t_ns.tolist(), found.end_ns) == ([0, 10 * MS], 20 * MS)


def test_a_gauge_stays_as_it_is() -> None:
    found = curve(series("g", "power", Kind.GAUGE, [0, 10, 20], [3, 4, 4]))
    assert (found.unit, found.values.tolist(), found.end_ns) == ("W", [3, 4, 4], 20 * MS)


def test_a_core_is_busy_when_its_ticks_say_so_and_cpuidle_is_preferred_where_it_is() -> None:
    ticks = {
        f"proc_stat/{core}/{state}": series(
            f"proc_stat/{core}/{state}", "time", Kind.CUMULATIVE, [0, 10, 20], values
        )
        for core, state, values in (
            ("cpu0", "busy", [0, 10 * MS, 10 * MS]),
            ("cpu0", "idle", [0, 0, 10 * MS]),
            ("cpu10", "busy", [0, 5 * MS, 10 * MS]),
            ("cpu10", "idle", [0, 5 * MS, 10 * MS]),
            ("cpu2", "busy", [0, 10 * MS, 20 * MS]),
            ("cpu2", "idle", [0, 0, 0]),
        )
    }
    idle = series("cpuidle/cpu2/idle", "time", Kind.CUMULATIVE, [0, 10, 20], [0, 8 * MS, 30 * MS])
    found = cores(Trace(series=ticks | {idle.channel.name: idle}))
    assert [c.name for c in found] == ["cpu0", "cpu2", "cpu10"]
    assert found[0].values == pytest.approx([100, 0])
    assert found[1].values == pytest.approx([20, 0])  # a sleep that ends late is longer than 100 %
    assert found[2].values == pytest.approx([50, 50])


def test_a_window_begins_with_the_value_that_holds_there() -> None:
    part = line([0, 10, 20], [1, 2, 3], 30).within(15, 25)
    assert (part.t_ns.tolist(), part.values.tolist(), part.end_ns) == ([15, 20], [2, 3], 25)


def test_means_weigh_each_value_by_how_long_it_held_and_leave_the_unknown_out() -> None:
    assert time_mean(line([0, 10], [100, 0], 40), 0, 40) == 25
    assert time_mean(line([0, 10], [nan, 8], 40), 0, 40) == 8
    assert time_mean(line([0], [nan], 40), 0, 40) is None
    both = mean_of((line([0, 10], [100, 0], 20), line([10], [50], 20)), "mean")
    assert both is not None
    assert (both.t_ns.tolist(), both.values.tolist()) == ([0, 10], [100, 25])
    assert mean_of((), "mean") is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400), st.integers(2, 60))
def test_a_thinner_curve_keeps_its_extremes_and_its_order(values: list[float], most: int) -> None:
    whole = line(range(len(values)), values, len(values))
    thin = whole.thinned(most)
    assert len(thin) <= max(most, 2)
    assert (thin.values.min(), thin.values.max()) == (min(values), max(values))
    assert (np.diff(thin.t_ns) > 0).all()
    assert all(whole.values[t] == v for t, v in zip(thin.t_ns, thin.values, strict=True))
