"""The recorder, the model, the clock's alignment, and runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketgrad.base.errors import DataError, SettingError, UnknownNameError
from pocketgrad.trace.clock import Tie, align
from pocketgrad.trace.model import UNITS, Absent, Channel, Counter, Kind, Span
from pocketgrad.trace.recorder import OFF, Recorder
from pocketgrad.trace.run import Run, from_json, median, quartiles

POWER = Channel("rail", "power", Kind.GAUGE, "rail VDD_IN", "/sys/x")


def test_what_is_recorded_is_in_the_trace_and_the_trace_stays_as_it_is() -> None:
    recorder = Recorder()
    recorder.declare(POWER)
    recorder.declare(POWER)
    recorder.sample("rail", 5, 2.5)
    recorder.span("conv", "queue 0", 1, 4, {"layer": "conv1"})
    recorder.missing([Absent("gpu", "none"), Absent("gpu", "none")])
    recorder.missing([Absent("gpu", "none")])
    recorder.note("model", "lenet")
    trace = recorder.trace()
    recorder.sample("rail", 6, 9.0)
    assert list(trace.counters) == [Counter("rail", "W", 5, 2.5)]
    assert trace.spans == (Span("conv", "queue 0", 1, 4, {"layer": "conv1"}),)
    assert trace.spans[0].duration_ns == 3
    assert [str(a) for a in trace.absent] == ["gpu: not available: none"]
    assert trace.metadata == {"model": "lenet"}
    assert [s.channel.name for s in trace.of("power")] == ["rail"]
    with pytest.raises(ValueError, match="read-only"):
        trace.series["rail"].values[0] = 1


def test_nothing_is_kept_when_off() -> None:
    with OFF.timed("x"):
        OFF.span("x", "t", 0, 1)
        OFF.declare(POWER)
        OFF.sample("rail", 0, 1.0)
        OFF.note("model", "x")
    assert OFF.trace() == Recorder().trace()


def test_a_timed_block_is_kept_also_when_it_raises() -> None:
    recorder = Recorder()
    with pytest.raises(KeyError), recorder.timed("load", "host"):
        raise KeyError
    (span,) = recorder.trace().spans
    assert (span.name, span.track) == ("load", "host")
    assert span.end_ns >= span.start_ns


def test_two_channels_of_one_name_and_undeclared_ones_are_refused() -> None:
    recorder = Recorder()
    recorder.declare(POWER)
    with pytest.raises(SettingError, match="two channels are named 'rail': from /sys/x and from y"):
        recorder.declare(Channel("rail", "power", Kind.GAUGE, "", "y"))
    with pytest.raises(UnknownNameError, match="no channel is named 'rial'; did you mean rail"):
        recorder.sample("rial", 0, 1.0)


def test_mistakes_in_the_model_are_told() -> None:
    with pytest.raises(SettingError, match="ends at 1 ns, before its start at 2 ns"):
        Span("x", "t", 2, 1)
    with pytest.raises(UnknownNameError, match="did you mean power"):
        Channel("x", "powr", Kind.GAUGE, "", "")
    assert UNITS["energy"] == "J"


def test_one_tie_gives_the_offset_and_half_its_width_as_error() -> None:
    aligned = align([Tie(1000, 5000, 5400)])
    assert aligned.host_ns(1000) == 5200
    assert aligned.host_ns(2000) == 6200
    assert aligned.error_ns == 200


@given(
    offset=st.integers(-(10**18), 10**18),
    drift=st.floats(-1e-4, 1e-4),
    at=st.lists(st.integers(0, 10**11), min_size=2, max_size=8, unique=True),
    width=st.integers(0, 10**5),
)
def test_a_drifting_clock_is_placed_within_the_stated_error(offset, drift, at, width) -> None:
    def host(device: int) -> int:
        placed: int = device + offset + round(device * drift)
        return placed

    ties = [Tie(d, host(d) - width // 2, host(d) + width // 2) for d in at]
    aligned = align(ties)
    for device in at:
        assert abs(aligned.host_ns(device) - host(device)) <= aligned.error_ns + 300


def test_no_tie_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(SettingError, match="take one before the run"):
        align([])


def test_a_run_is_written_and_read_back() -> None:
    run = Run((1.5, 2.5, 9.0), (7.0,), {"batch": 64, "device": "pocl"}, ("the CPU was hot",))
    assert from_json(run.to_json()) == run
    assert median(run) == 2.5
    assert quartiles(run) == (2.0, 5.75)
    assert quartiles(Run((3.0,))) == (3.0, 3.0)
    with pytest.raises(TypeError):
        run.metadata["batch"] = 1  # type: ignore[index]  # immutable on purpose


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"batch": "64"}, "metadata 'batch' is '64'; it takes int samples"),
        ({"batch": 0}, "metadata 'batch' is 0; it cannot be below 1"),
        ({"batch": True}, "it takes int"),
        ({"loss": "low"}, "it takes float"),
        ({"btach": 1}, "did you mean batch"),
    ],
)
def test_metadata_is_checked(metadata, words: str) -> None:
    with pytest.raises((SettingError, UnknownNameError), match=words):
        Run((), (), metadata)


def test_what_is_no_run_is_refused() -> None:
    for text in (
        "",
        "{}",
        "[]",
        '{"values": ["x"], "warmups": [], "metadata": {}, "warnings": []}',
    ):
        with pytest.raises(DataError, match="no recorded run"):
            from_json(text)
    with pytest.raises(SettingError, match="measure at least one step"):
        median(Run(()))
