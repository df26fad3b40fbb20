"""Samplers of the device's own sensors, and the thread that reads them beside a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.telemetry import (
    cgroup,
    cpufreq,
    cpuidle,
    drm_fdinfo,
    gpu_adreno,
    gpu_amd,
    gpu_intel,
    gpu_jetson,
    gpu_mali,
    gpu_nvidia,
    gpu_nvml,
    gpu_v3d,
    hwmon,
    ina3221,
    meminfo,
    odpm,
    power_supply,
    pressure,
    proc_stat,
    process,
    rapl,
    raspberry_pi,
    thermal,
)
from pocketgrad.telemetry.api import Found, Sampler
from pocketgrad.telemetry.machine import Machine

ALL: Mapping[str, Sampler] = {
    "cgroup": cgroup.find,
    "cpufreq": cpufreq.find,
    "cpuidle": cpuidle.find,
    "drm_fdinfo": drm_fdinfo.find,
    "gpu_adreno": gpu_adreno.find,
    "gpu_amd": gpu_amd.find,
    "gpu_intel": gpu_intel.find,
    "gpu_jetson": gpu_jetson.find,
    "gpu_mali": gpu_mali.find,
    "gpu_nvidia": gpu_nvidia.find,
    "gpu_nvml": gpu_nvml.find,
    "gpu_v3d": gpu_v3d.find,
    "hwmon": hwmon.find,
    "ina3221": ina3221.find,
    "meminfo": meminfo.find,
    "odpm": odpm.find,
    "power_supply": power_supply.find,
    "pressure": pressure.find,
    "proc_stat": proc_stat.find,
    "process": process.find,
    "rapl": rapl.find,
    "raspberry_pi": raspberry_pi.find,
    "thermal": thermal.find,
}


def find(machine: Machine, samplers: Iterable[str] | None = None) -> Found:
    """All that the named samplers (by default every one) can read on a machine, and cannot."""
    chosen = list(ALL if samplers is None else samplers)
    for name in chosen:
        if name not in ALL:
            raise UnknownNameError("sampler", name, ALL)
    results = [ALL[name](machine) for name in chosen]
    return Found(
        tuple(probe for found in results for probe in found.probes),
        tuple(absent for found in results for absent in found.absent),
    )
