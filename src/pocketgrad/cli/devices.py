"""`pocketgrad devices`: the OpenCL devices of this machine and which one `auto` takes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pocketgrad.base.units import si
from pocketgrad.cli.output import Table, add_json, emit

if TYPE_CHECKING:
    from pocketgrad.backends.choosing import Choice
    from pocketgrad.backends.runtimes import DeviceReport, Survey

NAME = "devices"
HELP = "list the OpenCL devices of this machine, and which one 'auto' takes and why"
EXAMPLE = "pocketgrad devices --refresh"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument(
        "--refresh", action="store_true", help="probe every driver again instead of remembering"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the survey; having no device is an answer, not a failure."""
    from pocketgrad.backends import platforms

    found = platforms.survey(refresh=args.refresh)
    choice = platforms.choose(found)
    emit(args.json, payload(found, choice), parts(found, choice))
    return 0


def payload(found: Survey, choice: Choice) -> dict[str, Any]:
    """The survey as JSON takes it; `doctor` has the same keys and more."""
    from pocketgrad.backends.runtimes import to_json

    return {
        "runtimes": [to_json(runtime) for runtime in found.runtimes],
        "auto": {
            "backend": choice.backend,
            "device": choice.device.ident if choice.device else None,
            "why": choice.why,
        },
        "notes": list(found.notes),
    }


def parts(found: Survey, choice: Choice) -> list[Table | str]:
    """The survey for people."""
    rows = [_row(device) for device in found.devices if device.usable]
    shown: list[Table | str] = []
    if rows:
        columns = ("device", "kind", "name", "driver", "units", "MHz", "memory", "local", "half")
        shown.append(Table("OpenCL devices", columns, rows, "llllrrrrl"))
    shown += [f"{d.ident} ({d.name}): {d.unusable}" for d in found.devices if not d.usable]
    shown += trouble(found)
    taken = choice.device.ident if choice.device else choice.backend
    shown.append(f"auto takes: {taken} ({choice.why})")
    return shown


def trouble(found: Survey) -> list[str]:
    """A line per driver that cannot be used, with what to do, and the survey's own notes."""
    lines = [
        f"{runtime.library or runtime.origin}: {runtime.outcome}; {runtime.reason}\n"
        f"  from {runtime.origin}; to do: {runtime.advice}"
        for runtime in found.runtimes
        if runtime.outcome != "ok"
    ]
    return lines + list(found.notes)


def _row(device: DeviceReport) -> tuple[str, ...]:
    integrated = device.kind == "gpu" and device.unified_memory
    return (
        device.ident,
        "integrated gpu" if integrated else device.kind,
        device.name,
        f"{device.platform} {device.driver}",
        str(device.compute_units),
        str(device.max_clock_mhz or "?"),
        si(device.global_mem_nbytes, "B"),
        si(device.local_mem_nbytes, "B"),
        "yes" if device.fp16 else "storage",
    )
