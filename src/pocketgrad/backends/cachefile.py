"""Small files in the cache folder: written whole or not at all, unreadable ones count as absent."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` in one step, so that a reader or a crash never meets half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in ``path``; None when there is none or it is damaged: it is only a cache."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def why_not_writable(folder: Path) -> str:
    """Why nothing can be written in ``folder``, which is made if need be; '' when it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)
