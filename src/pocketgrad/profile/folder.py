"""The folder of a profile: whether it can be written, writing all of it, reading it back.

What the files are, `report.exporters` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pocketgrad.base.errors import DataError, SettingError
from pocketgrad.report import exporters
from pocketgrad.trace.profile import Profile, from_json

FILE = "profile.json"


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


def save(profile: Profile, folder: Path, only: Iterable[str] = ()) -> exporters.Saved:
    """Write a profile in every form, or in those named; what could not be written says why."""
    check(folder)
    return exporters.save(profile, folder, only)


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
