"""`pocketgrad record-tree`: what this device's sensors say, as a folder that can be played back."""

from __future__ import annotations

import argparse
from pathlib import Path

from pocketgrad.base.errors import SettingError
from pocketgrad.cli.output import add_json, emit

NAME = "record-tree"
HELP = "record this device's sensors for playing back elsewhere, in tests or with --device-tree"
EXAMPLE = "pocketgrad record-tree --out my-phone --seconds 5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder to write")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to follow changes")
    parser.add_argument("--period-ms", type=int, default=100, help="time between two looks")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Record and say what was found; a device without sensors is an answer, not a failure."""
    from pocketgrad.telemetry import find
    from pocketgrad.telemetry.machine import this_machine
    from pocketgrad.telemetry.playback import Playback, save
    from pocketgrad.telemetry.recording import record

    if not 0 <= args.seconds <= 3600 or args.period_ms < 1:
        raise SettingError(
            f"--seconds {args.seconds:g} --period-ms {args.period_ms}: record from 0 to 3600 s "
            "with a period of 1 ms or more"
        )
    if args.out.exists() and any(args.out.iterdir()):
        raise SettingError(f"{args.out} is not empty; name a new folder with --out")
    recording = record(
        this_machine(), lambda m: find(m).probes, args.seconds, args.period_ms * 1_000_000
    )
    save(recording, args.out)
    found = find(Playback(recording).machine)
    channels = [channel.name for probe in found.probes for channel in probe.channels]
    payload = {
        "folder": str(args.out),
        "files": len(recording.tree),
        "frames": len(recording.frames),
        "channels": channels,
        "absent": {absent.name: absent.reason for absent in found.absent},
    }
    parts = [
        f"recorded {len(recording.tree)} files and {len(recording.frames)} frames of changes in "
        f"{args.out}: {len(channels)} channels can be played back",
        *(str(absent) for absent in found.absent),
        "Look the files over before you publish them.",
    ]
    emit(args.json, payload, parts)
    return 0
