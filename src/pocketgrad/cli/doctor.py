"""`pocketgrad doctor`: what training needs on this machine, what is there, what to install."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pocketgrad.base.config import settings
from pocketgrad.base.units import si
from pocketgrad.cli import devices
from pocketgrad.cli.output import Table, add_json, emit
from pocketgrad.cli.selfcheck import Outcome, check

if TYPE_CHECKING:
    from pocketgrad.backends.quarantine import Verdict
    from pocketgrad.backends.runtimes import Survey

NAME = "doctor"
HELP = "examine this machine: drivers, numerics, packages, memory, disk; say what is missing"
EXAMPLE = "pocketgrad doctor --json"

REQUIRED = ("numpy", "pyopencl", "rich", "safetensors")
OPTIONAL = ("intel-opencl-rt", "intel-cmplr-lib-rt", "torch")
LOW_DISK_NBYTES = 500_000_000  # programs, checkpoints and the embedded data need less


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument(
        "--no-self-check", action="store_true", help="leave out the numeric check of the kernels"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Examine everything anew; 0 when at least one OpenCL device is usable, else 1."""
    from pocketgrad.backends import platforms
    from pocketgrad.backends.advice import install_hints, this_system
    from pocketgrad.backends.quarantine import quarantine

    found = platforms.survey(refresh=True)
    checks = [] if args.no_self_check else [check(device) for device in found.usable]
    choice = platforms.choose(found)  # after the check: a failing device is passed over
    hints = install_hints(this_system(), {device.family for device in found.usable})
    failed = {d.ident: quarantine().failed(d) for d in found.usable}
    about = _about()
    payload = {
        "usable": bool(found.usable),
        **about,
        **devices.payload(found, choice),
        "hints": list(hints),
        "self_check": [asdict(outcome) for outcome in checks],
        "quarantine": {ident: [asdict(v) for v in vs] for ident, vs in failed.items()},
    }
    parts = [
        *_about_parts(about),
        _runtimes(found),
        *devices.parts(found, choice),
        *_self_check_parts(checks, failed),
        *_hint_parts(hints, bool(found.usable)),
        _conclusion(about, found),
    ]
    emit(args.json, payload, parts)
    return 0 if found.usable else 1


def _about() -> dict[str, Any]:
    """What is known without any driver."""
    return {
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "system": {
            "platform": platform.platform(),
            "machine": platform.machine(),
            "cpu_count": os.cpu_count(),
        },
        "packages": {name: _version(name) for name in ("pocketgrad", *REQUIRED, *OPTIONAL)},
        "cache": _cache(settings().cache_dir),
        "memory": memory(),
    }


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cache(folder: Path) -> dict[str, Any]:
    from pocketgrad.backends.cachefile import why_not_writable

    problem = why_not_writable(folder)
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    return {
        "folder": str(folder),
        "writable": not problem,
        "problem": problem,
        "free_nbytes": shutil.disk_usage(there).free,
    }


def memory(meminfo: Path = Path("/proc/meminfo")) -> dict[str, int | str | None]:
    """Bytes of memory, total and available; None with a reason where the kernel does not tell."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        fields = {line.split(":")[0]: line.split()[1] for line in lines if ":" in line}
        total, available = (int(fields[key]) * 1024 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, IndexError, ValueError) as error:
        reason = f"not available: {meminfo}: {error}"
        return {"total_nbytes": None, "available_nbytes": None, "reason": reason}
    return {"total_nbytes": total, "available_nbytes": available, "reason": ""}


def _about_parts(about: Mapping[str, Any]) -> list[Table | str]:
    packages = about["packages"]
    ram, cache = about["memory"], about["cache"]
    if ram["reason"]:
        free = str(ram["reason"])
    else:
        free = f"{si(ram['available_nbytes'], 'B')} of {si(ram['total_nbytes'], 'B')} available"
    state = "" if cache["writable"] else f", cannot be written: {cache['problem']}"
    rows = [
        ("system", f"{about['system']['platform']}, {about['system']['cpu_count']} CPUs"),
        ("python", f"{about['python']['version']}, {about['python']['executable']}"),
        ("pocketgrad", packages["pocketgrad"] or "not installed; runs from its source"),
        *((name, packages[name] or "missing") for name in REQUIRED),
        *((name, packages[name] or "not installed (optional)") for name in OPTIONAL),
        ("memory", free),
        ("cache", f"{cache['folder']}, {si(cache['free_nbytes'], 'B')} free{state}"),
    ]
    return [Table("This machine", ("what", "found"), rows)]


def _runtimes(found: Survey) -> Table | str:
    if not found.runtimes:
        return "No OpenCL driver is installed: no .icd file, no vendor library, no Intel wheel."
    rows = [
        (Path(r.library or r.origin).name, r.origin, r.outcome, r.reason or "-")
        for r in found.runtimes
    ]
    return Table("OpenCL drivers", ("driver", "announced by", "outcome", "reason"), rows)


def _self_check_parts(
    checks: Sequence[Outcome], failed: Mapping[str, Sequence[Verdict]]
) -> list[Table | str]:
    lines: list[Table | str] = []
    for outcome in checks:
        if outcome.problem:
            lines.append(f"self-check of {outcome.device}: {outcome.problem}")
        else:
            good = sum(verdict.ok for verdict in outcome.verdicts)
            lines.append(
                f"self-check of {outcome.device}: {good} of {len(outcome.verdicts)} kernel "
                "families computed correctly"
            )
    rows = [
        (ident, verdict.family, verdict.reason, verdict.checked)
        for ident, verdicts in failed.items()
        for verdict in verdicts
    ]
    if rows:
        columns = ("device", "kernel family", "reason", "checked")
        lines.append(Table("Quarantine: these kernels are not used", columns, rows))
    return lines


def _hint_parts(hints: Sequence[str], usable: bool) -> list[Table | str]:
    if not hints:
        return []
    title = "Could be added:" if usable else "To install:"
    return ["\n".join([title, *(f"  {hint}" for hint in hints)])]


def _conclusion(about: Mapping[str, Any], found: Survey) -> str:
    wrong = [f"package {name} is missing" for name in REQUIRED if about["packages"][name] is None]
    cache = about["cache"]
    if not cache["writable"]:
        wrong.append(
            "the cache folder cannot be written, set POCKETGRAD_CACHE to a folder of yours"
        )
    if cache["free_nbytes"] < LOW_DISK_NBYTES:
        wrong.append(f"the disk of the cache has only {si(cache['free_nbytes'], 'B')} left")
    if not found.usable:
        wrong.append("no OpenCL device is usable, so only the slow reference backend can train")
    if not wrong:
        return "All is well: this machine can train."
    return f"{'Usable, but' if found.usable else 'Not well:'} {'; '.join(wrong)}."
