"""What a profile is written as: a table of writers, each a file or several in a folder.

A writer in `report` needs an entry here and nothing else; one whose package is missing says which.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from pocketgrad.base.errors import DataError, SettingError
from pocketgrad.report import exporters as report
from pocketgrad.trace.profile import Profile, from_json, to_json

FILE = "profile.json"

Exporter = Callable[[Profile, Path], list[Path]]


def write_json(profile: Profile, folder: Path) -> list[Path]:
    """All of it, as `load` reads it."""
    path = folder / FILE
    path.write_text(json.dumps(to_json(profile), separators=(",", ":")), encoding="utf-8")
    return [path]


def write_report(profile: Profile, folder: Path) -> list[Path]:
    """The page, traces and tables; `left_out` says which of them need another package."""
    return list(report.save(profile, folder, [e.file for e in report.ALL if e.file != FILE]).paths)


def left_out() -> list[str]:
    """Each file that cannot be written here, with the reason and what to install."""
    pairs = ((exporter.file, report.why_missing(exporter)) for exporter in report.ALL)
    return [f"{file}: not written: {reason}" for file, reason in pairs if reason]


ALL: Mapping[str, Exporter] = {"json": write_json, "report": write_report}


def check(folder: Path) -> None:
    """Refuse a folder that cannot be written, before anything is measured."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise SettingError(
            f"the profile cannot be written to {folder}: {error.strerror or error}; "
            "name another folder"
        ) from error


def save(profile: Profile, folder: Path) -> list[Path]:
    """Write a profile in every form; the files."""
    check(folder)
    return [path for export in ALL.values() for path in export(profile, folder)]


def load(folder: str | Path) -> Profile:
    """A profile that was saved: its folder, or the JSON file in it."""
    path = Path(folder)
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise DataError(
            f"{folder} is no profile: there is no {FILE}; "
            "make one with `pocketgrad profile --out DIR`"
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}; measure it again") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} holds no profile; measure it again")
    return from_json(found)
