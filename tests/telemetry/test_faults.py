"""Missing, closed, empty, stale, wrapping, garbage: no value is invented, and nothing stops."""

from __future__ import annotations

import errno

import pytest
from tests.telemetry.played import DEVICES, MS, S, absences, device, readings, sampled

from pocketgrad.telemetry import find
from pocketgrad.telemetry.energy import grown
from pocketgrad.telemetry.playback import Frame, Playback, Recording

FAULTS: dict[str, str | OSError | None] = {
    "missing": None,
    "denied": OSError(errno.EACCES, "denied"),
    "passing": OSError(errno.ENODATA, "no data"),
    "empty": "",
    "blank": "\n",
    "garbage": "?!\x00 garbage",
    "negative": "-1",
    "huge": "9" * 40,
}
UNREAD = ("missing", "denied", "passing", "empty", "blank", "garbage")


def sources(recording: Recording) -> dict[str, str]:
    probes = find(Playback(recording).machine).probes
    return {channel.name: channel.source for probe in probes for channel in probe.channels}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", DEVICES)
def test_a_fault_in_any_one_file_costs_no_more_than_its_channels(name: str, fault: str) -> None:
    recording = device(name)
    before = readings(recording)
    for path in recording.tree:
        broken = recording.with_changes({path: FAULTS[fault]})
        after = readings(broken)
        for channel, source in sources(broken).items():  # another file may have taken its place
            if source == path and fault in UNREAD:
                assert channel not in after, f"{path} is {fault}, and {channel} still has a value"
        invented = [c for c, v in after.items() if v == 0 and before.get(c)]
        assert not invented, f"{path} is {fault}: a zero stands in for {invented}"


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_without_any_file_has_a_reason_for_everything(name: str) -> None:
    bare = Recording({}, (), device(name).about)
    assert readings(bare) == {}
    reasons = absences(bare)
    for sampler in ("proc_stat", "meminfo", "rapl", "thermal", "ina3221", "power_supply"):
        assert reasons[sampler]


@pytest.mark.parametrize("name", DEVICES)
def test_a_stale_device_is_seen_to_refresh_nothing(name: str) -> None:
    recording = device(name)
    still = Recording(recording.tree, (), recording.about)
    trace = sampled(still)
    for series in trace.series.values():
        assert series.refresh_ns is None
        assert len(series) <= 2, "the first value, and when it was last seen"


def with_frames(name: str, *frames: Frame) -> Recording:
    recording = device(name)
    return Recording(recording.tree, frames, recording.about)


def test_a_core_that_goes_offline_ends_its_series_and_comes_back() -> None:
    recording = device("jetson-tx2")
    text = recording.tree["/proc/stat"]
    assert isinstance(text, str)
    without = "\n".join(line for line in text.splitlines() if not line.startswith("cpu5"))
    played = with_frames(
        "jetson-tx2",
        Frame(500 * MS, {"/proc/stat": without}),
        Frame(1000 * MS, {"/proc/stat": text}),
    )
    trace = sampled(played)
    # Polled every 50 ms: last seen at 450 ms, again from 1 s on, and at the end.
    assert trace.series["proc_stat/cpu5/busy"].t_ns.tolist() == [0, 450 * MS, S, 2 * S]
    assert trace.series["proc_stat/cpu0/busy"].t_ns.tolist() == [0, 2 * S]


def test_a_counter_that_goes_back_counts_nothing_twice() -> None:
    path = "/sys/devices/platform/axi/1002000000.v3d/gpu_stats"
    header = "queue\ttimestamp\tjobs\truntime\n"
    rows = [f"{header}csd\t1\t1\t{runtime}" for runtime in (150, 140, 160)]
    recording = device("raspberry-pi-5").with_changes({path: f"{header}csd\t1\t1\t100"})
    frames = tuple(Frame((i + 1) * 100 * MS, {path: row}) for i, row in enumerate(rows))
    trace = sampled(Recording(recording.tree, frames, recording.about))
    assert trace.series["gpu_v3d/csd"].values.tolist() == [100, 150, 140, 160, 160]
    assert grown(trace.series["gpu_v3d/csd"]) == 60


def test_renumbered_monitors_keep_their_names() -> None:
    recording = device("amd-desktop-nvidia")
    swap = {"hwmon1": "hwmon2", "hwmon2": "hwmon1"}
    moved = {
        "/".join(swap.get(part, part) for part in path.split("/")): content
        for path, content in recording.tree.items()
    }
    before, after = readings(recording), readings(Recording(moved, (), recording.about))
    assert {n: v for n, v in before.items() if n.startswith("hwmon")} == {
        n: v for n, v in after.items() if n.startswith("hwmon")
    }


def test_two_chips_with_one_rail_label_stay_apart() -> None:
    label = "/sys/bus/i2c/drivers/ina3221x/0-0040/iio:device0/rail_name_1"
    values = readings(device("jetson-tx2").with_changes({label: "VDD_SYS_DDR"}))
    assert values["ina3221/VDD_SYS_DDR@0-0040"] == 0.382
    assert values["ina3221/VDD_SYS_DDR@0-0041"] == 0.727


@pytest.mark.parametrize(
    ("stated", "celsius"),
    [("47250", 47.25), ("47", 47.0), ("472", 47.2), ("-5000", -5.0), ("3000", 3.0)],
)
def test_temperatures_in_three_units(stated: str, celsius: float) -> None:
    path = "/sys/class/thermal/thermal_zone0/temp"
    assert readings(device("jetson-tx2").with_changes({path: stated}))[
        "thermal/BCPU-therm"
    ] == pytest.approx(celsius)


@pytest.mark.parametrize("stated", ["-256000", "0", "-40000", "-274000", "400000"])
def test_a_temperature_that_cannot_be_is_none(stated: str) -> None:
    path = "/sys/class/thermal/thermal_zone0/temp"
    values = readings(device("jetson-tx2").with_changes({path: stated}))
    assert "thermal/BCPU-therm" not in values


def test_a_unit_behind_a_number_is_read_over() -> None:
    path = "/sys/class/misc/mali0/device/utilization"
    assert (
        readings(device("mali-phone").with_changes({path: "37 %"}))["gpu_mali/kbase/utilization"]
        == 37
    )


def test_charging_from_a_supply_that_is_silent_gives_no_power_of_the_device() -> None:
    status = "/sys/class/power_supply/battery/status"
    values = readings(device("mali-phone").with_changes({status: "Charging"}))
    assert values["power_supply/battery/power"] == pytest.approx(1.6068)
    assert "power_supply/device/power" not in values


def test_a_card_that_does_not_tell_its_power_is_not_at_zero_watts() -> None:
    recording = device("amd-desktop-nvidia")
    line = next(path for path in recording.tree if path.startswith("$ nvidia-smi"))
    answer = "00000000:01:00.0, NVIDIA GeForce MX150, [N/A], [N/A], 512, 210, [N/A], 38"
    changed = recording.with_changes({line: answer})
    name = "gpu_nvidia/NVIDIA GeForce MX150"
    assert readings(changed)[f"{name}/temperature"] == 38
    assert f"{name}/power" not in readings(changed)
    assert "[N/A]" in absences(changed)[f"{name}/power"]
