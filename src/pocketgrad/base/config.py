"""All settings in one frozen dataclass, and the only reader of the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user can set from outside, with its default."""

    cache_dir: Path  # programs, downloads, device judgements
    probe_timeout_s: float  # how long a driver may take to answer before it counts as hanging
    verify: bool  # check the graph after every pass (tests do; costs compile time)
    icd_vendors: str = ""  # the user's own OCL_ICD_VENDORS: a folder, an .icd file or a library


@cache
def settings() -> Settings:
    """The settings of this process: POCKETGRAD_CACHE, POCKETGRAD_PROBE_TIMEOUT, POCKETGRAD_VERIFY."""
    env = os.environ
    xdg = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Settings(
        cache_dir=Path(env.get("POCKETGRAD_CACHE") or Path(xdg) / "pocketgrad"),
        probe_timeout_s=float(env.get("POCKETGRAD_PROBE_TIMEOUT", "60")),
        verify=env.get("POCKETGRAD_VERIFY", "0") == "1",
        icd_vendors=env.get("OCL_ICD_VENDORS", ""),
    )
