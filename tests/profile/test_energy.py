"""Joules of parts, by hand: what is measured, what folding resolves, what stays an attribution."""

from __future__ import annotations

import numpy as np
import pytest
from tests.profile.made import MS, S, figure, joules, launch, profiled, series, timeline, trace

from pocketgrad.profile.meters import main_meters, meter, meters
from pocketgrad.trace.model import Kind
from pocketgrad.trace.profile import Label

A, B = launch("conv2d", "a"), launch("relu", "b", "backward")


def by_name(profile) -> dict:
    return {row.op: figure(row) for row in profile.ops}


def test_a_sensor_faster_than_the_launches_measures_each() -> None:
    """A: 60 of 100 ms at 10 W, B: 40 ms at 5 W, refreshed every 5 ms: 0.6 and 0.2 J a step."""
    ran = timeline([A, B], [(0, 0, 60 * MS), (1, 60 * MS, 100 * MS)], 4, 100 * MS)
    t = np.arange(0, 401, 5) * MS
    power = np.where((t // MS) % 100 < 60, 10.0, 5.0)
    total = np.concatenate(([0], np.cumsum(power[:-1] * 0.005)))
    found = profiled(ran, trace(series("rapl/psys", t, total)))
    figures = by_name(found)
    assert figures["conv2d"].joules == pytest.approx(2.4)
    assert figures["relu"].joules == pytest.approx(0.8)
    assert {f.label for f in figures.values()} == {Label.MEASURED}
    assert [figure(s).joules for s in found.steps] == pytest.approx([0.8] * 4)
    assert found.energy[0].figure.joules == pytest.approx(3.2)
    assert {row.name: figure(row).joules for row in found.phases} == pytest.approx(
        {"forward": 2.4, "backward": 0.8}
    )


def slow_counter(period_ns: int, refresh_ns: int, steps: int, watts):
    """A counter that shows at every refresh what was taken; ``watts`` by microsecond of a step."""
    t = np.arange(0, steps * period_ns + refresh_ns, refresh_ns)
    fine = np.concatenate(([0.0], np.cumsum(watts))) / 1e9  # joules after each microsecond, ×1000
    whole = fine[-1] * 1000
    at = t // period_ns * whole + fine[(t % period_ns) // 1000] * 1000
    return series("rapl/psys", t, at)


def folding(refresh_ns: int = 7_300_000, steps: int = 600):
    """A: 2 ms at 10 W, B: 3 ms at 2 W; a refresh takes longer than the whole step of 5.1 ms."""
    period = 5_100_000
    plan = [(0, 0, 2 * MS), (1, 2 * MS, 5 * MS)]
    watts = np.concatenate((np.full(2000, 10.0), np.full(3000, 2.0), np.full(100, 1.0)))
    ran = timeline([A, B], plan, steps, period)
    return profiled(ran, trace(slow_counter(period, refresh_ns, steps, watts)))


def test_folding_resolves_launches_shorter_than_the_refresh() -> None:
    """20 mJ and 6 mJ a step, from a sensor that speaks once in 1.4 steps."""
    figures = by_name(folding())
    assert figures["conv2d"].label is Label.FOLDED
    assert figures["conv2d"].joules == pytest.approx(600 * 0.020, rel=0.02)
    assert figures["relu"].label is Label.FOLDED
    assert figures["relu"].joules == pytest.approx(600 * 0.006, rel=0.05)
    assert abs(figures["relu"].joules - 3.6) < 4 * figures["relu"].error_j + 0.02 * 3.6


def test_steps_in_time_with_the_refresh_tell_nothing_of_their_parts() -> None:
    """Every refresh covers exactly two steps: all equations are the same."""
    figures = by_name(folding(refresh_ns=10_200_000))
    assert {f.label for f in figures.values()} <= {Label.ATTRIBUTED, Label.UNRESOLVABLE}
    # By time 2 : 3 : 0.1 of 26.1 mJ, with half of it as the error.
    assert figures["conv2d"].joules == pytest.approx(600 * 0.0261 * 2 / 5.1, rel=0.01)
    assert figures["conv2d"].error_j == pytest.approx(figures["conv2d"].joules / 2, rel=0.05)


@pytest.mark.parametrize("refresh", [400_000, 3_100_000, 7_300_000, 10_200_000, 900 * MS])
def test_all_tables_add_up_to_the_integral(refresh: int) -> None:
    found = folding(refresh)
    whole = found.energy[0].figure.joules
    for rows in (found.ops, found.layers, found.phases, found.steps):
        assert joules(rows) == pytest.approx(whole, rel=1e-6)


def test_a_run_shorter_than_the_sensor_needs_is_not_resolvable() -> None:
    ran = timeline([A], [(0, 0, 10 * MS)], 4, 10 * MS)
    counter = series("rapl/psys", [0, 30 * MS, 60 * MS], [0.0, 1.0, 3.0])
    found = profiled(ran, trace(counter))
    assert figure(found.ops[0]).label is Label.UNRESOLVABLE
    assert "refreshes every" in figure(found.ops[0]).note


def test_momentary_power_is_folded_by_the_launch_it_fell_into() -> None:
    """A sensor that reads 8 W inside A and 3 W inside B, once every 7.3 ms."""
    period, steps = 5 * MS, 400
    ran = timeline([A, B], [(0, 0, 2 * MS), (1, 2 * MS, 5 * MS)], steps, period)
    t = np.arange(0, steps * period + 7_300_000, 7_300_000)
    watts = np.where(t % period < 2 * MS, 8.0, 3.0) + 1e-6 * np.arange(len(t))
    gauge = series("ina3221/VDD_IN", t, watts, Kind.GAUGE, "power")
    figures = by_name(profiled(ran, trace(gauge)))
    assert figures["conv2d"].label is Label.FOLDED
    assert figures["conv2d"].joules == pytest.approx(steps * 0.016, rel=0.03)
    assert figures["relu"].joules == pytest.approx(steps * 0.009, rel=0.03)


def test_the_whole_device_counts_and_not_its_parts_twice() -> None:
    t, one = [0, S, 2 * S], [1.0, 1.0, 1.0]
    found = trace(
        series("ina3221/VDD_IN", t, one, Kind.GAUGE, "power"),
        series("ina3221/GPU", t, one, Kind.GAUGE, "power", whole=False, within="ina3221/VDD_IN"),
    )
    assert [m.channel.name for m in main_meters(meters(found))] == ["ina3221/VDD_IN"]


def test_a_counter_is_taken_before_power_samples_of_the_same_device() -> None:
    t = [0, S, 2 * S, 3 * S]
    found = trace(
        series("power_supply/device", t, [5.0, 6.0, 5.0, 5.0], Kind.AVERAGE, "power"),
        series("rapl/psys", t, [0.0, 5.0, 9.0, 14.0]),
    )
    assert [m.channel.name for m in main_meters(meters(found))] == ["rapl/psys"]


def test_without_a_sensor_of_the_whole_the_outermost_ones_are_added() -> None:
    t, values = [0, S, 2 * S], [0.0, 1.0, 2.0]
    found = trace(
        series("rapl/package-0", t, values, whole=False),
        series("rapl/core", t, values, whole=False, within="rapl/package-0"),
        series("gpu_nvml/energy", t, values, whole=False),
    )
    names = [m.channel.name for m in main_meters(meters(found))]
    assert names == ["rapl/package-0", "gpu_nvml/energy"]


def test_a_counter_that_wraps_goes_on() -> None:
    wrapping = series("rapl/psys", [0, S, 2 * S], [90.0, 98.0, 6.0], wraps_at=100.0)
    assert meter(wrapping).joules.tolist() == [0.0, 8.0, 16.0]


def test_steps_beyond_the_samples_have_no_joules_and_a_warning_says_so() -> None:
    ran = timeline([A], [(0, 0, 100 * MS)], 4, 100 * MS)
    counter = series("rapl/psys", np.arange(0, 251, 5) * MS, np.arange(51) * 0.05)
    found = profiled(ran, trace(counter))
    assert [s.energy is None for s in found.steps] == [False, False, True, True]
    assert found.energy[0].steps == 2
    assert found.energy[0].figure.joules == pytest.approx(2.0)
    assert joules(found.ops) == pytest.approx(2.0)
    assert any("cover 2 of 4 measured steps" in w for w in found.warnings)


def test_without_any_sensor_there_are_no_joules() -> None:
    found = profiled(timeline([A], [(0, 0, MS)], 3, MS), trace())
    assert found.energy == ()
    assert found.ops[0].energy is None
    assert found.steps[0].energy is None
