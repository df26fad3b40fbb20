"""One core for each worker of a CPU runtime, asked for before the runtime starts its threads.

Left alone, Linux often wakes both workers of a runtime on one core and leaves them there for
milliseconds or for a whole run: every launch then takes twice as long (docs/performance.md).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from types import MappingProxyType

# By runtime: PoCL's pthread driver, Intel's CPU runtime.
ASKED: Mapping[str, str] = MappingProxyType(
    {
        "POCL_AFFINITY": "1",
        "SYCL_CPU_PLACES": "threads",
        "SYCL_CPU_CU_AFFINITY": "close",
    }
)


def pins(said: Collection[str], allowed: int, present: int) -> dict[str, str]:
    """What to set in the environment, given which of its variables the user has set.

    Runtimes count cores from the first, so that within a set of some cores they would pin wrongly.
    """
    families = {name.partition("_")[0] for name in said}
    if allowed != present:
        return {}
    return {n: v for n, v in ASKED.items() if n.partition("_")[0] not in families}


def cores() -> tuple[int, int]:
    """How many cores this process may use, and how many there are."""
    present = os.cpu_count() or 1
    affinity = getattr(os, "sched_getaffinity", None)  # Linux and Android
    return (len(affinity(0)) if affinity else present), present
