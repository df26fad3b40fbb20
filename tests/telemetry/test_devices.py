"""Each recorded device yields the numbers that were worked out by hand from its files."""

from __future__ import annotations

import pytest
from tests.telemetry.played import DEVICES, S, absences, device, readings, sampled

from pocketgrad.telemetry.energy import grown, held_j, utilisation


def close(value: float):
    return pytest.approx(value, rel=1e-9)


def holds(values: dict[str, float], **expected: float) -> None:
    """Compare those named, with '__' for '/'."""
    for name, value in expected.items():
        key = name.replace("__", "/")
        assert values[key] == close(value), key


def share_of_core(trace, core: str) -> float | None:
    """Equation 1 over the whole trace."""
    busy, idle = (trace.series[f"proc_stat/{core}/{state}"] for state in ("busy", "idle"))
    return utilisation(grown(busy), grown(idle))


def joules(trace, name: str) -> float:
    series = trace.series[name]
    return held_j(series.t_ns, series.values)


def test_jetson_tx2() -> None:
    """GPU rail 152 mW idle and 3152 mW loaded; load 987 per mille; memory 320000 of 1.6e6 kHz."""
    tx2 = device("jetson-tx2")
    holds(
        readings(tx2),
        ina3221__VDD_IN=2.930,
        ina3221__VDD_SYS_CPU=0.539,
        ina3221__VDD_SYS_GPU=0.152,
        ina3221__VDD_SYS_DDR=0.727,
        ina3221__VDD_SYS_SOC=0.382,
        gpu_jetson__gp10b__utilisation=0.0,
        gpu_jetson__emc__utilisation=20.0,
    )
    late = readings(tx2, 3 * S // 2)
    holds(late, gpu_jetson__gp10b__utilisation=98.7, gpu_jetson__gp10b__frequency=1134.75e6)
    assert late["thermal/GPU-therm"] == 45.5
    trace = sampled(tx2)
    # 1 s at 2.93 W and 1 s at 8.93 W.
    assert joules(trace, "ina3221/VDD_IN") == close(11.86)
    # Per 100 ms 2 of 10 ticks busy, then 9 of 10: (20 + 90) of 200.
    assert share_of_core(trace, "cpu0") == close(55.0)
    assert not any("/cpu1/" in name for name in trace.series), "Denver cores are off"
    whole = [s.channel.name for s in trace.series.values() if s.channel.whole]
    assert whole == ["ina3221/VDD_IN"]
    assert trace.series["ina3221/VDD_SYS_GPU"].channel.within == "ina3221/VDD_IN"


def test_jetson_orin() -> None:
    """Watts are mV × mA: 4968 × 480, 160, 808 and 80; the memory rail is inside of VIN_SYS_5V0."""
    orin = device("jetson-orin")
    values = readings(orin)
    holds(
        values,
        ina3221__VDD_GPU_SOC=2.38464,
        ina3221__VDD_CPU_CV=0.79488,
        ina3221__VIN_SYS_5V0=4.014144,
        ina3221__VDDQ_VDD2_1V8AO=0.39744,
        gpu_jetson__gpu__utilisation=12.5,
        hwmon__pwmfan__fan1__speed=1200,
    )
    trace = sampled(orin)
    whole = [s.channel.name for s in trace.series.values() if s.channel.whole]
    assert sum(values[name] for name in whole) == close(7.193664)
    # From 1 s on 1480 mA: 4968 × 1480 is 7.35264 W; 2.38464 + 7.35264 J.
    assert joules(trace, "ina3221/VDD_GPU_SOC") == close(9.73728)
    assert "ina3221/NC" not in trace.series
    assert "thermal/cv0-thermal" not in values, "-256 °C is a sensor that is off"
    assert len(trace.series["thermal/cv0-thermal"]) == 0
    reasons = {absent.name: absent.reason for absent in trace.absent}
    assert "the sensor is off: it states -256000" in reasons["thermal/cv0-thermal"]
    assert (share_of_core(trace, "cpu0"), share_of_core(trace, "cpu11")) == (50.0, 0.0)


def test_adreno_phone() -> None:
    """USB 4.849176 V × 0.483995 A in, 4.391346 V × 0.179199 A into the battery."""
    phone = device("adreno-phone")
    values = readings(phone)
    assert values["gpu_adreno/utilisation"] == close(100 * 372644 / 1002210)
    assert values["power_supply/usb/power"] == pytest.approx(2.347, abs=5e-4)
    assert values["power_supply/battery/power"] == pytest.approx(0.787, abs=5e-4)
    assert values["power_supply/device/power"] == pytest.approx(1.560, abs=5e-4)
    assert values["power_supply/battery/temp"] == close(24.7)
    assert values["thermal/cpu-1-0-usr"] == 52.0, "this kernel states whole degrees"
    assert values["cooling/thermal-cpufreq-4"] == 3
    assert "thermal/quiet-therm" not in values, "-40000 is a sensor that is off"
    unplugged = readings(phone, 12 * S // 10)
    # 4.0 V × 0.5 A out of the battery; 901989 of 1002210 µs busy.
    assert unplugged["power_supply/device/power"] == close(2.0)
    assert unplugged["gpu_adreno/utilisation"] == close(90.0)
    assert readings(phone, 16 * S // 10)["gpu_adreno/utilisation"] == 0.0, "'0 0' is idle"
    assert absences(phone)["proc_stat"] == "permission denied: /proc/stat"
    trace = sampled(phone)
    # Of each 100 ms cpu0 idles 40 in WFI and 30 deeper: busy for 30 %.
    idle_ns = grown(trace.series["cpuidle/cpu0/idle"])
    assert 100 * (1 - idle_ns / (2 * S)) == close(30.0)


def test_mali_phone() -> None:
    """412 is mA, since no phone that is on draws 0.4 mA: 3.9 V × 0.412 A."""
    phone = device("mali-phone")
    holds(
        readings(phone),
        power_supply__battery__power=-1.6068,
        power_supply__device__power=1.6068,
        gpu_mali__kbase__utilization=12,
        thermal__BIG=41.5,
    )
    values = readings(phone, 3 * S // 2)
    assert values["gpu_mali/kbase/utilization"] == 97
    assert values["gpu_mali/1c500000.mali/utilisation"] == 42
    assert values["gpu_mali/1c500000.mali/frequency"] == 848e6
    trace = sampled(phone)
    # 150000 µWs in each of 20 frames: 3 J, which is 1.5 W.
    assert grown(trace.series["odpm/s2mpg10-odpm/S2S_VDD_G3D"]) == close(3.0)
    assert grown(trace.series["odpm/s2mpg10-odpm/VSYS_PWR_MODEM"]) == 0.0
    assert "mA" in trace.series["power_supply/battery/power"].channel.note
    assert share_of_core(trace, "cpu7") == close(30.0)


def test_raspberry_pi_5() -> None:
    """Rails are paired by name; EXT5V and BATT have no current and take no part."""
    pi = device("raspberry-pi-5")
    values = readings(pi)
    assert values["raspberry_pi/rails/VDD_CORE"] == close(6.22421 * 0.861733)
    assert values["raspberry_pi/rails/HDMI"] == close(0.0241758 * 5.08664)
    # 0.34663 + 0.29073 + 0.32591 + 0.24906 + 0.04010 + 0.19504 + 0.30192 + 5.36361 + 0.00020
    # + 0.00121 + 0.00244 + 0.12297
    assert values["raspberry_pi/rails"] == pytest.approx(7.23982, abs=5e-5)
    assert not any("EXT5V" in name or "BATT" in name for name in values)
    # 0x50005 is bits 0 and 2 now, 16 and 18 in the past.
    flags = ("under_voltage", "frequency_capped", "throttled", "soft_temperature_limit")
    assert [values[f"raspberry_pi/{flag}"] for flag in flags] == [1, 0, 1, 0]
    later = readings(pi, 3 * S // 2)
    assert [later[f"raspberry_pi/{flag}"] for flag in flags] == [0, 0, 0, 0]
    assert values["process/resident"] == 25_000 * 16_384, "pages of 16 KiB"
    trace = sampled(pi)
    # csd ran 60 of each 100 ms.
    assert grown(trace.series["gpu_v3d/csd"]) / (2 * S) == close(0.6)
    assert share_of_core(trace, "cpu3") == 100.0


def test_intel_laptop() -> None:
    """15 W package, 10 W core, 2 W memory, 20 W psys; the package counter wraps in 100 ms."""
    laptop = device("intel-laptop")
    trace = sampled(laptop)
    expected = {
        "rapl/package-0": 30.0,
        "rapl/package-0/core": 20.0,
        "rapl/package-0/dram": 4.0,
        "rapl/psys": 40.0,
    }
    for name, joule in expected.items():
        assert grown(trace.series[name]) == pytest.approx(joule, rel=1e-6), name
    assert [n for n in trace.series if n.startswith("rapl/")] == list(expected), "no -mmio twin"
    assert trace.series["rapl/package-0/core"].channel.within == "rapl/package-0"
    assert trace.series["rapl/package-0/dram"].channel.within == ""
    # Two descriptors are one client: 80 ms of each 100 once, not twice.
    assert grown(trace.series["drm_fdinfo/i915/engine/compute"]) / (2 * S) == close(0.8)
    holds(
        readings(laptop, S),
        drm_fdinfo__i915__memory__system0=16480 * 1024,
        power_supply__BAT0__power=-23.456,
        power_supply__device__power=23.456,
        gpu_intel__intel__frequency=1250e6,
        cgroup__cpu_time=123456789e3,
        cgroup__throttled=45e6,
        cgroup__memory_peak=734003200,
        pressure__cpu__some=62226799e3,
    )
    assert readings(laptop)["hwmon/coretemp/Package id 0/temperature"] == 61.0
    assert (share_of_core(trace, "cpu0"), share_of_core(trace, "cpu1")) == (100.0, 0.0)


def test_amd_desktop_with_nvidia_card() -> None:
    """1 s at 15.5 W and 1 s at 168.25 W, of which a tool that is asked at 5 Hz tells."""
    desktop = device("amd-desktop-nvidia")
    card = "gpu_nvidia/NVIDIA GeForce RTX 3060"
    values = readings(desktop, 3 * S // 2)
    assert values[f"{card}/utilisation"] == 98
    assert values[f"{card}/memory"] == 4096 * 1024 * 1024
    assert values[f"{card}/frequency"] == 1890e6
    holds(values, gpu_amd__amd__utilisation=93, gpu_amd__amd__power=31, gpu_amd__amd__vram=2**28)
    assert values["hwmon/k10temp/Tctl/temperature"] == close(55.125)
    assert values["hwmon/nvme@0000:04:00.0/Composite/temperature"] == close(38.85)
    trace = sampled(desktop)
    assert joules(trace, f"{card}/power") == close(183.75)
    reason = absences(desktop)["rapl/package-0"]
    assert "permission denied" in reason
    assert "sudo chmod a+r /sys/class/powercap/intel-rapl:0/energy_uj" in reason
    assert share_of_core(trace, "cpu15") == close(20.0)


@pytest.mark.parametrize("name", DEVICES)
def test_every_sampler_answers_for_every_device(name: str) -> None:
    """Either channels or a reason; and every series carries what is needed to judge it."""
    trace = sampled(device(name))
    for series in trace.series.values():
        channel = series.channel
        assert channel.unit
        assert channel.source
        assert channel.scope
        assert channel.kind
        assert channel.within == "" or channel.within in trace.series
    assert all(absent.reason for absent in trace.absent)
