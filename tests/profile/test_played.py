"""Joins on recorded devices, worked out by hand: 20 steps of 100 ms, 60 forward, 30 backward.

The joules of all steps are those of tests/telemetry/test_devices.py over the same two seconds.
"""

from __future__ import annotations

import errno

import pytest
from tests.profile.made import MS, figure, joules, launch, profiled, timeline
from tests.telemetry.played import DEVICES, S, device, sampled

from pocketgrad.telemetry.playback import Recording
from pocketgrad.trace.profile import Profile

PLAN = [(0, 0, 60 * MS), (1, 60 * MS, 90 * MS)]
LAUNCHES = (launch("conv2d", "conv"), launch("conv2d_grad", "conv", "backward"))

# The sum of the main channels: which they are, and their joules.
EXPECTED = {
    # 1 s at 2.93 W, 1 s at 8.93 W.
    "jetson-tx2": (["ina3221/VDD_IN"], 11.86),
    # 2.38464 + 7.35264, 2 × 0.79488, 2 × 4.014144.
    "jetson-orin": (
        ["ina3221/VDD_CPU_CV", "ina3221/VDD_GPU_SOC", "ina3221/VIN_SYS_5V0"],
        19.355328,
    ),
    # 1 s at 4.849176 × 0.483995 − 4.391346 × 0.179199, then 1 s at 4.0 × 0.5.
    "adreno-phone": (["power_supply/device/power"], 3.5600522),
    # 3.9 V × 0.412 A for 2 s.
    "mali-phone": (["power_supply/device/power"], 3.2136),
    # 2 × 7.23982 W.
    "raspberry-pi-5": (["raspberry_pi/rails"], 14.47964),
    # 20 W: the package, the cores and the memory are inside.
    "intel-laptop": (["rapl/psys"], 40.0),
    # No sensor of the whole: both cards, 2 × 31 W and 15.5 + 168.25.
    "amd-desktop-nvidia": (
        ["gpu_amd/amd/power", "gpu_nvidia/NVIDIA GeForce RTX 3060/power"],
        62.0 + 183.75,
    ),
}


def joined(recording: Recording, steps: int = 20) -> Profile:
    return profiled(timeline(LAUNCHES, PLAN, steps, 100 * MS), sampled(recording))


@pytest.mark.parametrize("name", DEVICES)
def test_sums_over_ops_layers_phases_and_steps_are_the_integral_of_the_samples(name: str) -> None:
    channels, expected = EXPECTED[name]
    found = joined(device(name))
    main = [t for t in found.energy if t.main]
    assert [t.channel for t in main] == channels
    assert sum(t.figure.joules or 0.0 for t in main) == pytest.approx(expected, rel=1e-4)
    for rows in (found.ops, found.layers, found.phases, found.steps):
        assert joules(rows) == pytest.approx(expected, rel=0.01)
    assert all(figure(row).label and figure(row).error_j is not None for row in found.ops)


def test_parts_of_a_tx2_step_by_hand() -> None:
    """A step takes 0.293 J in the first second and 0.893 J in the second; forward is 60 % of it."""
    found = joined(device("jetson-tx2"))
    steps = [figure(step).joules for step in found.steps]
    assert steps == pytest.approx([0.293] * 10 + [0.893] * 10)
    phases = {row.name: figure(row).joules for row in found.phases}
    assert phases == pytest.approx(
        {"forward": 0.6 * 11.86, "backward": 0.3 * 11.86, "gap": 0.1 * 11.86}
    )
    # Equation 4: 100 samples of 2.93 W and 100 of 8.93 W, 10 ms each.
    assert found.energy[0].paper_j == pytest.approx(11.86)


def test_the_paper_s_metrics_of_a_tx2_by_hand() -> None:
    """20 % busy in the first second and 90 % in the second; the GPU 0 and 98.7 %."""
    found = {(m.name, m.paper): m.value for m in joined(device("jetson-tx2")).metrics}
    assert found["CPU utilisation", True] == pytest.approx(55)
    assert found["cpu0 utilisation", False] == pytest.approx(55)
    assert found["gpu gp10b utilisation", True] == pytest.approx(98.7 / 2, rel=0.02)
    assert found["cpu0 idle-state ratio", False] == pytest.approx(45)
    assert found["cpu0 idle-state ratio", True] == 0.0, "ticks of 100 ms never show 10 idle ms"


def test_a_phone_that_hides_proc_stat_has_the_corrected_utilisation_alone() -> None:
    """cpu0 sleeps 70 of each 100 ms, cpu4 never."""
    found = {(m.name, m.paper): m for m in joined(device("adreno-phone")).metrics}
    assert found["CPU utilisation", False].value == pytest.approx(65)
    assert found["CPU utilisation", True].value is None
    assert "proc/stat" in found["CPU utilisation", True].how


def test_the_laptop_s_counter_measures_phases_apart_from_launches() -> None:
    """RAPL moves every 100 ms in this recording, as long as a step: nothing below it is told."""
    found = joined(device("intel-laptop"))
    assert {figure(row).label.value for row in found.ops} == {"attributed"}
    assert found.energy[0].figure.label.value == "measured"


PSYS = "/sys/class/powercap/intel-rapl:1/energy_uj"


@pytest.mark.parametrize(
    "content",
    [None, OSError(errno.EACCES, "EACCES"), "", "garbage\n"],
    ids=["missing", "denied", "empty", "garbage"],
)
def test_a_sensor_that_fails_gives_way_to_what_is_left(content) -> None:
    """Without psys the battery's power is that of the whole laptop: 23.456 W."""
    found = joined(device("intel-laptop").with_changes({PSYS: content}))
    main = [t for t in found.energy if t.main]
    assert [t.channel for t in main] == ["power_supply/device/power"]
    assert joules(found.ops) == pytest.approx(2 * 23.456, rel=0.01)
    assert any("psys" in a.name or "psys" in a.reason or PSYS in a.reason for a in found.absent)


def test_a_counter_that_stands_still_took_no_joules_and_resolves_nothing() -> None:
    found = joined(device("intel-laptop").with_changes({PSYS: "5000000\n"}))
    psys = next(t for t in found.energy if t.channel == "rapl/psys")
    assert psys.figure.joules == 0.0
    assert psys.figure.label.value != "measured"


def test_a_counter_that_wraps_in_the_run_is_counted_on() -> None:
    """The package counter of this recording wraps after 100 ms: 15 W for 2 s."""
    found = joined(device("intel-laptop"))
    package = next(t for t in found.energy if t.channel == "rapl/package-0")
    assert package.figure.joules == pytest.approx(30, rel=1e-4)


def test_a_run_longer_than_the_recording_has_joules_of_the_part_that_is_covered() -> None:
    found = joined(device("jetson-tx2"), steps=30)
    assert found.energy[0].steps == 20
    assert joules(found.ops) == pytest.approx(11.86)
    assert any("cover 20 of 30 measured steps" in w for w in found.warnings)


@pytest.mark.parametrize("name", DEVICES)
def test_what_a_device_does_not_have_is_said_first(name: str) -> None:
    found = joined(device(name))
    named = {a.name: a.reason for a in found.absent}
    assert "power" not in named
    assert "temperature" not in named
    if name in ("raspberry-pi-5", "intel-laptop"):
        assert "CPU frequency" not in named


def test_a_machine_without_any_sensor_says_so_for_each() -> None:
    found = joined(Recording({"/proc/version": "Linux\n"}, (), {"duration_ns": 3 * S}))
    named = {a.name: a.reason for a in found.absent}
    for what in ("power", "temperature", "GPU", "CPU frequency"):
        assert named[what], what
    assert "rapl: /sys/class/powercap does not exist" in named["power"]
    assert found.energy == ()
    assert found.ops[0].energy is None
