"""What is known about OpenCL drivers, as data: a report per driver, one per device, a survey."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["ok", "crashed", "hanging", "no devices", "load failure"]
Kind = Literal["cpu", "gpu", "accelerator", "other"]

# A short name for the platforms people know; the first pattern found in "name vendor" wins.
_FAMILIES = (
    ("pocl", r"portable computing language|pocl"),
    ("nvidia", r"nvidia"),
    ("intel", r"intel"),
    ("amd", r"advanced micro devices|\bamd\b"),
    ("adreno", r"qualcomm|adreno"),
    ("mali", r"\barm\b|mali"),
    ("rusticl", r"rusticl"),
    ("clvk", r"clvk"),
)


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """One OpenCL device: how to find it again in any process, and its limits."""

    ident: str  # what a user types: 'pocl:0'
    library: str
    platform: str
    platform_version: str
    name: str
    index: int  # among the devices of its platform
    vendor: str
    kind: Kind
    driver: str
    compute_units: int
    max_work_group: int
    local_mem_nbytes: int
    global_mem_nbytes: int
    max_alloc_nbytes: int
    base_align_nbytes: int
    opencl_c: str
    fp16: bool
    fp64: bool
    unified_memory: bool
    vector_width_float: int
    vector_width_half: int
    max_clock_mhz: int
    extensions: tuple[str, ...]
    unusable: str = (
        ""  # why nobody should compute on it; '' when it built and ran a kernel correctly
    )

    @property
    def family(self) -> str:
        """The platform's short name, the part of `ident` before the colon."""
        return self.ident.partition(":")[0]

    @property
    def usable(self) -> bool:
        """Whether the probe built and ran a kernel on it and nothing speaks against it."""
        return not self.unusable


@dataclass(frozen=True, slots=True)
class RuntimeReport:
    """One driver: what came of loading it in a process of its own."""

    library: str
    origin: str
    outcome: Outcome
    stage: str  # how far it came: 'load', 'devices', 'build', 'done'
    reason: str = ""
    advice: str = ""
    devices: tuple[DeviceReport, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """All drivers of this machine."""

    runtimes: tuple[RuntimeReport, ...]
    notes: tuple[str, ...] = ()  # what went wrong beside the drivers, such as an unwritable cache

    @property
    def devices(self) -> tuple[DeviceReport, ...]:
        """Every device found, usable or not, in the order of the drivers."""
        return tuple(device for runtime in self.runtimes for device in runtime.devices)

    @property
    def usable(self) -> tuple[DeviceReport, ...]:
        """The devices one can compute on."""
        return tuple(device for device in self.devices if device.usable)


def family(platform: str, vendor: str) -> str:
    """The short name of a platform: 'pocl', 'intel', 'nvidia'…; a slug of its name if unknown."""
    text = f"{platform} {vendor}".lower()
    for short, pattern in _FAMILIES:
        if re.search(pattern, text):
            return short
    return re.sub(r"[^a-z0-9]+", "-", platform.lower()).strip("-") or "opencl"


def name_devices(runtimes: tuple[RuntimeReport, ...]) -> tuple[RuntimeReport, ...]:
    """Give every device its `ident`, counted within a family over all drivers."""
    count: Counter[str] = Counter()
    named = []
    for runtime in runtimes:
        devices = []
        for device in runtime.devices:
            short = family(device.platform, device.vendor)
            # An emulator never moves the numbers of the devices one can use.
            short += "-fpga" if "fpga" in device.platform.lower() else ""
            devices.append(dataclasses.replace(device, ident=f"{short}:{count[short]}"))
            count[short] += 1
        named.append(dataclasses.replace(runtime, devices=tuple(devices)))
    return tuple(named)


def to_json(report: RuntimeReport) -> dict[str, Any]:
    """A report as JSON takes it; `runtime_from_json` reads it back."""
    return dataclasses.asdict(report)


def device_from_json(fields: Mapping[str, Any]) -> DeviceReport:
    """A device from what the probe printed; TypeError or KeyError if it is of another version."""
    return DeviceReport(**{**fields, "extensions": tuple(fields["extensions"])})


def runtime_from_json(fields: Mapping[str, Any]) -> RuntimeReport:
    """A report from a cache file; TypeError or KeyError if it is of another version."""
    devices = tuple(device_from_json(device) for device in fields["devices"])
    return RuntimeReport(**{**fields, "devices": devices})
