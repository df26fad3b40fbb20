"""Files that hold training: written whole or not at all, checked when read, the last two kept.

A file is safetensors; its header's metadata carries a JSON text and a SHA-256 over that text and
all arrays. What the arrays mean is not known here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import CheckpointError

FORMAT = "pocketgrad-checkpoint-1"
KEPT = 2
_STEM, _END = "checkpoint-", ".safetensors"
_TEMPORARY = ".unfinished"
_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "uint8": "U8",
    "bool": "BOOL",
}


@dataclass(frozen=True, eq=False)
class Saved:
    """What a checkpoint holds. ``skipped`` tells which newer files could not be used, and why."""

    path: Path
    arrays: Mapping[str, Array]
    about: Mapping[str, Any]
    skipped: tuple[str, ...] = ()


def save(folder: Path, number: int, arrays: Mapping[str, Array], about: Mapping[str, Any]) -> Path:
    """Write checkpoint ``number``, then remove all but the last two."""
    path = folder / f"{_STEM}{number:012d}{_END}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, encode(arrays, about))
    except OSError as error:
        there = [p.name for p in files(folder)]
        intact = f"{there[-1]} is intact" if there else "nothing was saved yet"
        raise CheckpointError(
            f"cannot write the checkpoint '{path}': {error.strerror or error}; {intact}. "
            "Free space or choose another folder, then resume"
        ) from error
    for old in (*files(folder)[:-KEPT], *folder.glob(f".{_STEM}*{_TEMPORARY}")):
        old.unlink(missing_ok=True)
    return path


def latest(folder: Path) -> Saved:
    """The newest checkpoint that is whole; CheckpointError with the reasons if there is none."""
    found = files(folder)
    if not found:
        raise CheckpointError(
            f"there is no checkpoint in '{folder}'; name the folder that training wrote to, "
            "or start anew"
        )
    skipped: list[str] = []
    for path in reversed(found):
        try:
            saved = load(path)
        except CheckpointError as error:
            skipped.append(str(error))
            continue
        return Saved(path, saved.arrays, saved.about, tuple(skipped))
    raise CheckpointError(f"no checkpoint in '{folder}' can be used: {'; '.join(skipped)}")


def files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    try:
        return sorted(folder.glob(f"{_STEM}*{_END}"))
    except OSError as error:
        raise CheckpointError(f"cannot read '{folder}': {error.strerror or error}") from error


def number(path: Path) -> int:
    """The number a checkpoint was saved under; -1 for a file that is none."""
    digits = path.name.removeprefix(_STEM).removesuffix(_END)
    return int(digits) if digits.isdigit() else -1


def encode(arrays: Mapping[str, Array], about: Mapping[str, Any]) -> bytes:
    """The bytes of a checkpoint."""
    text = json.dumps(about, sort_keys=True)
    metadata = {"format": FORMAT, "about": text, "sha256": _digest(text, arrays)}
    return to_safetensors(arrays, metadata)


def to_safetensors(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """The bytes of a safetensors file; equal contents give equal bytes."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts, at = [], 0
    for name in sorted(arrays, key=lambda n: (-arrays[n].itemsize, n)):  # keeps all aligned
        array = arrays[name]
        header[name] = {
            "dtype": _DTYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        parts.append(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def load(path: Path) -> Saved:
    """A checkpoint; CheckpointError naming the file and what is wrong with it."""
    arrays, metadata = read_safetensors(path)
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"'{path}' is no checkpoint of pocketgrad (its format is "
            f"'{metadata.get('format', 'not stated')}'); weights alone are loaded with .load()"
        )
    text = metadata.get("about", "")
    if _digest(text, arrays) != metadata.get("sha256"):
        raise CheckpointError(f"'{path}' is corrupt: its contents do not match their checksum")
    return Saved(path, arrays, json.loads(text))


def read_safetensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """All arrays of a safetensors file and its metadata; CheckpointError if it is none."""
    from safetensors import SafetensorError, safe_open

    try:
        with path.open("rb") as file:
            size = len(file.read(8))
        if size < 8:
            raise CheckpointError(f"'{path}' is truncated: it ends after {size} bytes")
        with safe_open(str(path), framework="numpy") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # not a mapping
            return arrays, dict(opened.metadata() or {})
    except OSError as error:
        raise CheckpointError(f"cannot read '{path}': {error.strerror or error}") from error
    except (SafetensorError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"'{path}' is truncated, corrupt, or not a safetensors file of known types: {error}"
        ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file at once: after a crash at any moment it is the old one or the new one."""
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # some file systems cannot sync a folder; the file is whole
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _digest(text: str, arrays: Mapping[str, Array]) -> str:
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"\0{name}\0{array.dtype}\0{arrays[name].shape}\0".encode())
        found.update(array.tobytes())
    return found.hexdigest()
