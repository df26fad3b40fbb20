"""What is missing on this machine and how to install it, judged by a few telling files."""

from __future__ import annotations

import platform
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pocketgrad.backends.runtimes import Survey

REFRESH = "After a change run `pocketgrad devices --refresh`"


@dataclass(frozen=True, slots=True)
class System:
    """The traits of a machine that decide what can be installed on it."""

    machine: str
    linux: bool
    termux: bool
    debian: bool
    nvidia: bool  # NVIDIA's kernel driver is loaded
    amd: bool  # AMD's compute driver is loaded
    dri: bool  # some GPU has a render node

    @property
    def takes_intel_wheel(self) -> bool:
        """Whether PyPI has Intel's CPU runtime for it."""
        return self.linux and not self.termux and self.machine in ("x86_64", "amd64")


def this_system(root: Path = Path("/")) -> System:
    """Look at the machine; ``root`` stands for the file system's root."""
    return System(
        machine=platform.machine().lower(),
        linux=sys.platform == "linux",
        termux="com.termux" in sys.base_prefix,
        debian=(root / "etc/debian_version").exists(),
        nvidia=(root / "proc/driver/nvidia/version").exists() or (root / "dev/nvidiactl").exists(),
        amd=(root / "dev/kfd").exists(),
        dri=any((root / "dev/dri").glob("renderD*")),
    )


def install_hints(system: System, families: Collection[str]) -> tuple[str, ...]:
    """One sentence per runtime that could be installed and is not among ``families``."""
    hints = []
    if system.termux:
        if not {"adreno", "mali", "clvk"} & set(families):
            hints.append("GPU of the phone: `pkg install ocl-icd opencl-vendor-driver`")
        if "pocl" not in families:
            hints.append("CPU: `pkg install ocl-icd pocl`")
        return tuple(hints)
    if system.nvidia and "nvidia" not in families:
        hints.append(
            "NVIDIA GPU: its kernel driver is loaded but its OpenCL library was not usable; "
            "Debian: `apt-get install nvidia-opencl-icd`; in a container set "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        )
    if system.amd and not {"amd", "rusticl"} & set(families):
        hints.append("AMD GPU: ROCm's OpenCL (`rocm-opencl`), or Debian's `mesa-opencl-icd`")
    if system.dri and not {"intel", "amd", "nvidia", "rusticl"} & set(families):
        hints.append(
            "GPU with a render node: Intel `apt-get install intel-opencl-icd`; others Mesa"
        )
    if "pocl" not in families:
        command = (
            "`apt-get install pocl-opencl-icd`"
            if system.debian
            else "install PoCL (portablecl.org)"
        )
        hints.append(f"CPU, small download, as root: {command}")
    if system.takes_intel_wheel and "intel" not in families:
        hints.append("CPU, without root, 270 MB download: `pip install 'pocketgrad[cpu]'`")
    return tuple(hints)


def advice_for(outcome: str, reason: str, library: str) -> str:
    """What to do about a driver that cannot be used."""
    name = Path(library).name or "the driver"
    if outcome == "hanging":
        return (
            f"reinstall {name}, or remove its .icd file; a slow machine: POCKETGRAD_PROBE_TIMEOUT"
        )
    if outcome == "crashed":
        return f"reinstall or update {name}, or remove its .icd file; it is not loaded until then"
    if outcome == "no devices":
        return (
            "check that the hardware is visible to this user (groups video and render, /dev nodes)"
        )
    return next(text for part, text in _LOAD_ADVICE if part in reason).format(name=name)


# The first text found in a loader's complaint decides.
_LOAD_ADVICE = (
    ("pyopencl", "`pip install pyopencl`"),
    ("Permission denied", "make {name} and its folder readable for this user"),
    ("invalid ELF header", "{name} is damaged, or no library: reinstall the package that owns it"),
    ("file too short", "{name} is damaged: reinstall the package that owns it"),
    ("wrong ELF class", "install the build of {name} for this processor and this Python"),
    (
        "not an OpenCL driver",
        "on Termux `pkg install ocl-icd opencl-vendor-driver`; else remove it",
    ),
    ("libOpenCL.so", "install the OpenCL loader: Debian `apt-get install ocl-icd-libopencl1`"),
    ("cannot open shared", "reinstall {name} with what it depends on, or remove its .icd file"),
    ("", "reinstall {name}, or remove its .icd file"),
)


def missing_device_text(found: Survey) -> str:
    """One sentence for a machine without a usable device: what was found, and what to install."""
    seen = [f"{Path(r.library or r.origin).name}: {r.outcome}" for r in found.runtimes]
    families = {device.family for device in found.usable}
    hints = install_hints(this_system(), families)
    what = f"found {', '.join(seen)}" if seen else "no OpenCL driver is installed"
    return f"{what}; to install one: {'; or '.join(hints)}"
