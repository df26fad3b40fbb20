"""A profile survives JSON: what was measured is what is read back."""

import json
from dataclasses import fields

import numpy as np
import pytest

from pocketgrad.base.errors import DataError
from pocketgrad.trace.clock import Alignment
from pocketgrad.trace.model import Absent, Channel, Kind, Series, Span, Trace
from pocketgrad.trace.profile import (
    Ceiling,
    EnergyFigure,
    EnergyTotal,
    Events,
    GroupRow,
    Label,
    LaunchRow,
    MemoryCurve,
    Metric,
    OpRow,
    OpShare,
    Overhead,
    Profile,
    StepRow,
    Work,
    from_json,
    to_json,
)


def profile() -> Profile:
    """One of everything."""
    joules = EnergyFigure(0.25, Label.FOLDED, 0.01)
    share = OpShare("conv2d", "features.0", "forward", 1.0, 100)
    launch = LaunchRow("conv2d", "conv", (share,), "features.0", "forward", Work.COMPUTE, 100, 40)
    times = [np.array(row, np.int64) for row in ([0, 0], [1, 2], [5, 9], [6, 10], [7, 20], [9, 30])]
    channel = Channel("ina3221/VDD_IN", "power", Kind.GAUGE, "rail VDD_IN", "/sys/x", whole=True)
    series = Series(channel, np.array([1, 50], np.int64), np.array([2.5, 3.5]))
    values = np.array([4.0, 5.5])
    return Profile(
        {"model": "lenet5", "batch": 32, "rate": 0.5, "quick": True},
        (launch,),
        Events(*times),
        (StepRow(1, 0, 10, 2, True), StepRow(2, 10, 40, 10, False, joules)),
        (
            OpRow(
                "conv2d", "features.0", "forward", Work.COMPUTE, 1, 100, 40, values, False, joules
            ),
        ),
        (GroupRow("features.0", 1, 100, 40, values),),
        (GroupRow("forward", 1, 100, 40, values, joules),),
        Trace((Span("upload", "host", 1, 4, {"nbytes": 7}),), {channel.name: series}),
        {"queue 0": Alignment(3, 1.5, 1.0, 20.0)},
        MemoryCurve(("activations", "workspace"), np.array([[1, 2], [5, 3]], np.int64), 99),
        (Ceiling("arithmetic", 1e9, "flop/s", "fma"),),
        (EnergyTotal(channel.name, channel.scope, True, joules, 30, None, 1),),
        (Metric("idle state ratio", None, "%", "no samples", True),),
        Overhead(5, 1000, 3, 1, 1.0, values, values * 1.1),
        (Absent("power", "no sensor"),),
        ("short",),
    )


def test_a_profile_written_as_json_reads_back_unchanged() -> None:
    first = json.loads(json.dumps(to_json(profile())))
    again = from_json(first)
    assert json.loads(json.dumps(to_json(again))) == first
    assert again.launches == profile().launches
    assert again.steps == profile().steps
    assert list(again.events) == list(profile().events)
    series = again.trace.series["ina3221/VDD_IN"]
    assert series.channel == profile().trace.series["ina3221/VDD_IN"].channel
    assert series.t_ns.dtype == np.int64
    assert again.memory is not None
    assert again.memory.peak_nbytes == 8


def test_the_sample_profile_fills_every_field() -> None:
    """So that the round trip above says something of each."""
    made = profile()
    for name in (f.name for f in fields(Profile)):
        value = getattr(made, name)
        assert value is not None, name
        assert not hasattr(value, "__len__") or len(value), name


def test_numbers_follow_from_the_raw_values() -> None:
    made = profile()
    assert made.overhead.slowdown == pytest.approx(0.1)
    assert made.overhead.of_one_core == 0.005
    assert made.ops[0].median_ns == 4.75
    assert [s.number for s in made.measured_steps] == [2]
    assert made.steps[1].gap_ns == 20
    assert len(made.events.of_step(2)) == 1
    assert not made.launches[0].fused


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({}, "no profile of format 1 but of None"),
        ({"format": 7}, "of 7"),
        ({"format": 1, "profile": {}}, "damaged"),
        ({"format": 1, "profile": {"events": 3}}, "damaged"),
    ],
)
def test_something_else_is_refused(found: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_json(found)
