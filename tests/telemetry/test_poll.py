"""Polling with a made-up clock: stamps, changes only, real refresh, overruns, failures."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pocketgrad.base.errors import SettingError
from pocketgrad.telemetry.api import Found, Probe
from pocketgrad.telemetry.machine import UnreadableError
from pocketgrad.telemetry.poll import Poller
from pocketgrad.telemetry.thread import Monitor, excess
from pocketgrad.trace.model import Absent, Channel, Kind
from pocketgrad.trace.recorder import Recorder

MS = 1_000_000
CHANNEL = Channel("rail", "power", Kind.GAUGE, "rail", "/rail")


class Sensor:
    """Refreshes every ``refresh_ns``, takes ``cost_ns`` to read, fails in given intervals."""

    def __init__(self, refresh_ns: int, cost_ns: int = 0, fails: range = range(0)) -> None:
        self.now, self.refresh_ns, self.cost_ns, self.fails = 0, refresh_ns, cost_ns, fails

    def read(self) -> Mapping[str, float]:
        value = float(self.now // self.refresh_ns)
        self.now += self.cost_ns
        if self.now in self.fails:
            raise UnreadableError("powered off", lasting=False)
        return {"rail": value}


def poll(sensor: Sensor, until_ns: int, period_ns: int = 10 * MS, own_period_ns: int = 0):
    recorder = Recorder()
    probe = Probe((CHANNEL,), sensor.read, own_period_ns)
    poller = Poller([probe], recorder, period_ns, lambda: sensor.now)
    while sensor.now < until_ns:
        due = poller.poll()
        sensor.now = max(sensor.now, due)
    poller.finish()
    return poller.healths[0], recorder.trace().series["rail"]


def test_only_changes_are_kept_and_the_true_refresh_is_found() -> None:
    health, series = poll(Sensor(refresh_ns=70 * MS), 1000 * MS)
    assert health.polls == 100
    assert series.values.tolist() == [*map(float, range(15)), 14.0]
    assert health.refresh_ns("rail") == pytest.approx(70 * MS)
    assert series.refresh_ns == 70 * MS
    assert series.t_ns[-1] == 990 * MS, "the last value is known to hold until its last read"


def test_a_slow_source_is_polled_at_its_own_period() -> None:
    health, _ = poll(Sensor(refresh_ns=10 * MS), 1000 * MS, own_period_ns=250 * MS)
    assert health.polls == 4


def test_the_stamp_is_the_middle_of_the_read_and_its_cost_is_kept() -> None:
    health, series = poll(Sensor(refresh_ns=10**12, cost_ns=4 * MS), 100 * MS)
    assert series.t_ns.tolist() == [2 * MS, 92 * MS]
    assert health.read_mean_ns == health.read_max_ns == 4 * MS


def test_an_overrun_is_recorded_and_not_made_up_for() -> None:
    health, _ = poll(Sensor(refresh_ns=10 * MS, cost_ns=25 * MS), 1000 * MS)
    assert health.late > 30
    assert health.polls == pytest.approx(40, abs=1), "one read at a time, none in a burst"


def test_a_failure_ends_what_is_known_and_is_counted_with_its_reason() -> None:
    sensor = Sensor(refresh_ns=10**12, fails=range(300 * MS, 600 * MS))
    health, series = poll(sensor, 1000 * MS)
    assert health.failures == {"powered off": 30}
    assert series.t_ns.tolist() == [0, 290 * MS, 600 * MS, 990 * MS]


def test_a_channel_left_out_of_a_reading_is_a_failure_with_a_reason() -> None:
    recorder = Recorder()
    poller = Poller([Probe((CHANNEL,), dict)], recorder, 10 * MS, lambda: 0)
    poller.poll()
    assert poller.healths[0].failures == {"rail: not in /rail this time": 1}
    assert len(recorder.trace().series["rail"]) == 0


def test_what_never_gave_a_value_is_absent_with_the_reason() -> None:
    recorder = Recorder()
    sensor = Sensor(refresh_ns=1, fails=range(10**12))
    poller = Poller([Probe((CHANNEL,), sensor.read)], recorder, 10 * MS, lambda: sensor.now)
    poller.poll()
    poller.poll_all()
    poller.finish()
    assert poller.latest() == {}
    (absent,) = recorder.trace().absent
    assert str(absent) == "rail: not available: 2 of 2 reads failed: powered off"


def test_a_source_that_changed_once_has_no_refresh() -> None:
    health, series = poll(Sensor(refresh_ns=700 * MS), 1000 * MS)
    assert health.refresh_ns("rail") is None
    assert series.refresh_ns is None


def test_the_monitor_reads_at_least_once_and_reports_what_it_took() -> None:
    recorder = Recorder()
    sensor = Sensor(refresh_ns=1)
    found = Found((Probe((CHANNEL,), sensor.read),), (Absent("gpu", "none"),))
    with Monitor(found, recorder) as monitor:
        pass
    trace = recorder.trace()
    assert len(trace.series["rail"]) >= 1
    assert trace.absent == (Absent("gpu", "none"),)
    assert monitor.cost.polls >= 1
    assert monitor.cost.cpu_ns > 0
    assert monitor.refresh_ns() == {"rail": None}
    assert monitor.latest() == {"rail": 0.0}


def test_a_mistake_in_a_sampler_is_raised_where_it_is_seen() -> None:
    def broken() -> Mapping[str, float]:
        raise RuntimeError("a mistake")

    monitor = Monitor(Found((Probe((CHANNEL,), broken),)), Recorder())
    monitor.start()
    with pytest.raises(RuntimeError, match="a mistake"):
        monitor.stop()


def test_with_the_recorder_off_nothing_runs() -> None:
    def unexpected() -> Mapping[str, float]:
        raise AssertionError("read although off")

    monitor = Monitor(Found((Probe((CHANNEL,), unexpected),)), Recorder(on=False))
    with monitor:
        pass
    assert monitor.cost.polls == 0


def test_a_period_below_a_millisecond_and_a_second_start_are_refused() -> None:
    with pytest.raises(SettingError, match="below 1000000 ns"):
        Monitor(Found(), Recorder(), period_ns=1000)
    with Monitor(Found(), Recorder()) as monitor:
        assert monitor.cost.polls == 0


@pytest.mark.parametrize(
    ("cpu_ns", "factor"), [(0, 1.0), (10 * MS, 1.0), (11 * MS, 1.0), (15 * MS, 1.5), (99 * MS, 2.0)]
)
def test_what_exceeds_one_percent_is_asked_less_often(cpu_ns: int, factor: float) -> None:
    assert excess(cpu_ns, 1000 * MS, 0.01) == factor


def test_a_stretched_poller_reads_less_often_and_says_so() -> None:
    sensor = Sensor(refresh_ns=1)
    poller = Poller([Probe((CHANNEL,), sensor.read)], Recorder(), 10 * MS, lambda: sensor.now)
    poller.stretch(1.5)
    poller.stretch(2.0)
    assert poller.stretched == 3.0
    assert poller.poll() == 30 * MS
