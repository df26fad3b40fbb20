"""Environments of peers: each in a folder of its own, with pinned versions, made on request.

A peer that is installed beside pocketgrad is used from there where no environment was made.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping
from ctypes.util import find_library
from pathlib import Path

from pocketgrad.base.config import settings
from pocketgrad.base.errors import DeviceError, SettingError, UnknownNameError
from pocketgrad.bench.adapters import OURS, PEERS

ON_OPENCL = ("tinygrad",)
PINS: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch==2.13.0", "numpy>=2,<3"),
    "jax": ("jax==0.10.2", "numpy>=2,<3"),
    "tensorflow": ("tensorflow-cpu==2.21.0", "numpy>=2,<3"),
    "mnn": ("MNN==3.6.1", "numpy>=2,<3"),
    "tinygrad": ("tinygrad==0.14.0", "numpy>=2,<3"),
}


def folder_of(peer: str) -> Path:
    """Where its environment lies: named by what is installed there, and for which Python."""
    if peer not in PEERS:
        raise UnknownNameError("peer", peer, PEERS)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(" ".join((version, *PINS[peer])).encode()).hexdigest()[:8]
    return settings().cache_dir / "peers" / f"{peer}-{digest}"


def python_of(peer: str) -> str:
    """The interpreter that runs a participant."""
    if peer != OURS:
        made = folder_of(peer) / "bin" / "python"
        if (folder_of(peer) / "ready").is_file():
            return str(made)
    return sys.executable


def drivers_for(peer: str) -> dict[str, str]:
    """Where a peer on OpenCL finds it, if the system has no loader: a driver that can be one."""
    if peer not in ON_OPENCL or find_library("OpenCL"):
        return {}
    from pocketgrad.backends import platforms

    libraries = [r.library for r in platforms.survey().runtimes if r.outcome == "ok"]
    direct = [library for library in libraries if _is_loader(library)]
    return {"OPENCL_PATH": direct[0]} if direct else {}


def _is_loader(library: str) -> bool:
    """Whether a driver has OpenCL's own functions; asked in a child, which may crash."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).clGetPlatformIDs"
    command = [sys.executable, "-c", code, library]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def set_up(peer: str, progress: Callable[[str], None]) -> Path:
    """Make the environment unless it is there; its folder."""
    folder = folder_of(peer)
    if (folder / "ready").is_file():
        progress(f"{peer}: {folder} is there already")
        return folder
    progress(f"{peer}: a fresh environment in {folder}")
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], peer)
    progress(f"{peer}: pip install {' '.join(PINS[peer])} (this can be hundreds of megabytes)")
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PINS[peer]], peer)
    (folder / "ready").write_text("\n".join(PINS[peer]) + "\n")
    return folder


def _run(command: list[str], peer: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SettingError(f"the environment of {peer} cannot be made: {error}") from None
    if done.returncode:
        lines = [x for x in (done.stderr or done.stdout).strip().splitlines() if "ERROR" in x]
        said = lines[0] if lines else f"exit code {done.returncode}"
        raise DeviceError(
            f"the environment of {peer} cannot be made: {said}. It takes part as 'absent'"
        )
