"""A comparison from end to end: who takes part, the folder they share, the run, the result."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import pocketgrad
from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.bench.adapters import OURS, PEERS, adapter
from pocketgrad.bench.api import Participant, Variant
from pocketgrad.bench.environments import drivers_for, python_of
from pocketgrad.bench.load import Load
from pocketgrad.bench.prepare import prepare
from pocketgrad.bench.remote import Remote
from pocketgrad.bench.result import result
from pocketgrad.bench.runner import GRID, Runner, Settings
from pocketgrad.bench.task import Workload
from pocketgrad.telemetry.machine import this_machine


def participants(devices: Sequence[str], peers: Sequence[str]) -> list[Participant]:
    """Ours on each device, then each peer; 'torch' means its usual variants, 'torch:eager' one."""
    found = [Participant(OURS, Variant(d, f"OpenCL device {d}")) for d in devices]
    for word in peers:
        name, _, wanted = word.partition(":")
        if name not in PEERS:
            raise UnknownNameError("peer", name, PEERS)
        variants = {v.name: v for v in adapter(name).VARIANTS}
        if wanted and wanted not in variants:
            raise UnknownNameError(f"variant of {name}", wanted, variants)
        chosen = [variants[wanted]] if wanted else [v for v in variants.values() if v.default]
        found += [Participant(name, variant) for variant in chosen]
    return list({p.name: p for p in found}.values())


def compare(
    workload: Workload,
    takers: Sequence[Participant],
    settings: Settings,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure one workload on all participants; the result as JSON."""
    check(settings)
    with tempfile.TemporaryDirectory(prefix="pocketgrad-bench-") as folder:
        progress(f"{workload.title}: weights and batches")
        flops = prepare(workload, Path(folder))
        contestants = [Remote(p, python_of(p.adapter), drivers_for(p.adapter)) for p in takers]
        runner = Runner(contestants, Path(folder), settings, Load(), progress)
        runner.gauges = {p.variant.name: Remote(p) for p in takers if p.adapter == OURS}
        entries = runner.run()
    more = {
        "command": " ".join(sys.argv),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": {"seconds": settings.seconds, "rounds": settings.rounds,
                     "steps": settings.steps, "threads": settings.threads},
        "machine": machine(),
        "reference": runner.reference,
        "ceilings": runner.ceilings,
        "interrupted": runner.interrupted,
        "notes": runner.notes,
    }  # fmt: skip
    return result(workload, entries, flops, more)


def check(settings: Settings) -> None:
    """Refuse what cannot be measured."""
    if settings.steps is not None and (settings.steps < 2 or settings.steps % 2):
        raise SettingError(
            f"--steps {settings.steps}: choose an even number from 2 on, so that every block ends "
            f"on the same batch (such as {', '.join(map(str, GRID[:4]))})"
        )
    if settings.rounds < 1 or settings.seconds <= 0 or settings.threads < 1:
        raise SettingError("--rounds, --seconds and --threads must be above 0")


def machine() -> dict[str, Any]:
    """What the times depend on; what cannot be read is None."""
    files = this_machine()
    cores = files.names("/sys/devices/system/cpu", r"cpu\d+")
    governor = files.get("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    model = next(
        (
            line.partition(":")[2].strip()
            for line in (files.get("/proc/cpuinfo") or "").splitlines()
            if line.startswith(("model name", "Model", "Hardware"))
        ),
        None,
    )
    return {
        "processor": model or platform.processor() or platform.machine(),
        "cores": len(cores) or os.cpu_count(),
        "governor": governor,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pocketgrad": pocketgrad.__version__,
    }
