"""All settings in one frozen dataclass, and the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pocketgrad.base.errors import SettingError


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user can set from outside, with its default."""

    cache_dir: Path  # programs, downloads, device judgements
    probe_timeout_s: float  # how long a driver may take to answer before it counts as hanging
    verify: bool  # check the graph after every pass (tests do; costs compile time)
    icd_vendors: str = ""  # the user's own OCL_ICD_VENDORS: a folder, an .icd file or a library
    affinity: tuple[str, ...] = ()  # what the user has set of where runtimes put their workers


@cache
def settings() -> Settings:
    """Those of this process, from POCKETGRAD_CACHE, _PROBE_TIMEOUT, _VERIFY and drivers' own."""
    env = os.environ
    xdg = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Settings(
        cache_dir=Path(env.get("POCKETGRAD_CACHE") or Path(xdg) / "pocketgrad"),
        probe_timeout_s=_seconds(
            "POCKETGRAD_PROBE_TIMEOUT", env.get("POCKETGRAD_PROBE_TIMEOUT"), 60.0
        ),
        verify=env.get("POCKETGRAD_VERIFY", "0") == "1",
        icd_vendors=env.get("OCL_ICD_VENDORS", ""),
        affinity=tuple(n for n in env if n.startswith(("POCL_AFFINITY", "SYCL_CPU_"))),
    )


def environment_with(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child process: that of this one, and more."""
    return {**os.environ, **more}


def _seconds(name: str, text: str | None, default: float) -> float:
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise SettingError(
            f"{name} is '{text}'; it must be a number of seconds above 0, such as 60"
        )
    return value
