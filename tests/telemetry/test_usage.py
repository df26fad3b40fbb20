"""Utilisation of cores over windows of played-back devices, by hand."""

from __future__ import annotations

import pytest
from tests.telemetry.played import MS, S, device, sampled

from pocketgrad.telemetry.usage import all_cores, core_utilisation, cores, idle_ratio


def test_ticks_of_a_tx2_before_and_after_its_load_begins() -> None:
    """2 of 10 ticks in each 100 ms of the first second, 9 of 10 in the second."""
    trace = sampled(device("jetson-tx2"))
    assert cores(trace) == ["cpu0", "cpu3", "cpu4", "cpu5"]
    assert core_utilisation(trace, "cpu0", 0, S) == pytest.approx(20)
    assert core_utilisation(trace, "cpu0", S, 2 * S) == pytest.approx(90)
    assert all_cores(trace, 0, 2 * S) == pytest.approx(dict.fromkeys(cores(trace), 55))


def test_idle_states_of_a_phone_that_hides_proc_stat() -> None:
    """cpu0 sleeps 70 of each 100 ms, cpu4 never."""
    trace = sampled(device("adreno-phone"))
    assert all_cores(trace, 0, 2 * S) == pytest.approx({"cpu0": 30, "cpu4": 100})


def test_cores_are_in_the_order_of_their_numbers() -> None:
    assert cores(sampled(device("amd-desktop-nvidia")))[-2:] == ["cpu14", "cpu15"]


def test_a_window_that_is_not_covered_or_empty_has_no_utilisation() -> None:
    trace = sampled(device("jetson-tx2"))
    assert core_utilisation(trace, "cpu0", 0, 3 * S) is None
    assert core_utilisation(trace, "cpu0", S, S) is None
    assert core_utilisation(trace, "cpu1", 0, S) is None
    assert all_cores(trace, 0, 3 * S) == {}


def test_the_idle_state_ratio_of_a_core_that_never_ran_and_of_one_that_always_did() -> None:
    trace = sampled(device("intel-laptop"))
    assert idle_ratio(trace, "cpu1", 0, 2 * S, 100 * MS) == 100.0
    assert idle_ratio(trace, "cpu0", 0, 2 * S, 100 * MS) == 0.0
    assert idle_ratio(trace, "cpu9", 0, 2 * S, 100 * MS) is None
