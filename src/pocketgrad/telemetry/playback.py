"""A recorded machine, played back: the same files and commands, changing at the recorded times.

A recording is a folder: `device.json`, `tree.txt` (what is there at the start), `frames.jsonl`
(what changes later). docs/howto/add-a-sampler.md describes the format.
"""

from __future__ import annotations

import errno
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pocketgrad.base.errors import DataError
from pocketgrad.telemetry.machine import Machine, UnreadableError

FORMAT = 1
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}
Tree = Mapping[str, "str | OSError"]  # absolute paths, and '$ command line'


@dataclass(frozen=True, slots=True)
class Frame:
    """What is different from ``t_ns`` on: new content, an error, or None for what is gone."""

    t_ns: int
    changes: Mapping[str, str | OSError | None]


@dataclass(frozen=True, slots=True)
class Recording:
    """A machine over time."""

    tree: Tree
    frames: tuple[Frame, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        """The time of the last change."""
        return self.frames[-1].t_ns if self.frames else 0

    def with_changes(self, changes: Mapping[str, str | OSError | None]) -> Recording:
        """The same machine with files (or folders: None takes all below away) replaced for good."""
        tree = dict(self.tree)
        for path, content in changes.items():
            if content is None:
                tree = {p: c for p, c in tree.items() if p != path and not p.startswith(f"{path}/")}
            else:
                tree[path] = content
        fixed = set(changes)
        frames = tuple(
            Frame(f.t_ns, {p: c for p, c in f.changes.items() if not _covered(p, fixed)})
            for f in self.frames
        )
        return replace(self, tree=tree, frames=frames)


class Playback:
    """Files and commands of a recording as they were ``now()`` after its start.

    After the recording's ``duration_ns`` nothing can be read any more: a counter that merely stood
    still would be taken for a device that uses no energy.
    """

    def __init__(self, recording: Recording, now: Callable[[], int] = lambda: 0) -> None:
        self._now = now
        self._times = [0, *(frame.t_ns for frame in recording.frames)]
        states: list[Tree] = [recording.tree]
        for frame in recording.frames:
            merged = {**states[-1], **frame.changes}
            states.append({path: c for path, c in merged.items() if c is not None})
        self._states = states
        about = recording.about
        self._end_ns = about.get("duration_ns")
        self.machine = Machine(
            self,
            self._run,
            int(about.get("ticks_per_s", 100)),
            int(about.get("page_nbytes", 4096)),
            process=str(about.get("process", "self")),
        )

    @property
    def _state(self) -> Tree:
        return self._states[max(0, bisect_right(self._times, self._now()) - 1)]

    def read(self, path: str, keep: bool) -> str:
        """The content now."""
        self._check_time()
        content = self._state.get(path)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, "not in the recording", path)
        if isinstance(content, OSError):
            raise content
        return content

    def names(self, folder: str) -> list[str]:
        """The next part of every path below a folder."""
        start = folder.rstrip("/") + "/"
        names = {
            path[len(start) :].split("/", 1)[0] for path in self._state if path.startswith(start)
        }
        if not names:
            raise FileNotFoundError(errno.ENOENT, "not in the recording", folder)
        return sorted(names)

    def _check_time(self) -> None:
        if self._end_ns is not None and self._now() > self._end_ns:
            reason = f"the recording ended after {self._end_ns / 1e9:g} s"
            raise UnreadableError(reason, lasting=False)

    def _run(self, command: Sequence[str]) -> str:
        self._check_time()
        line = f"$ {' '.join(command)}"
        content = self._state.get(line)
        if content is None:
            raise UnreadableError(f"the command {command[0]} is not installed")
        if isinstance(content, OSError):
            raise UnreadableError(f"{line[2:]} failed: {content.strerror}", lasting=False)
        return content


def load(folder: Path) -> Recording:
    """Read a recording; DataError names file and line of what is wrong."""
    about_path = folder / "device.json"
    if not about_path.is_file():
        raise DataError(
            f"{folder} is no recorded device: it has no device.json; "
            "make one with `pocketgrad record-tree --out DIR`"
        )
    about = _json(about_path, about_path.read_text(encoding="utf-8"))
    if about.get("format") != FORMAT:
        raise DataError(f"{about_path}: format {about.get('format')}, this version reads {FORMAT}")
    duration = about.get("duration_ns")
    if not (duration is None or isinstance(duration, int)):
        raise DataError(f"{about_path}: duration_ns is {duration!r}; it must be an integer")
    tree = parse_tree((folder / "tree.txt").read_text(encoding="utf-8"), str(folder / "tree.txt"))
    frames_path = folder / "frames.jsonl"
    lines = frames_path.read_text(encoding="utf-8").splitlines() if frames_path.is_file() else []
    frames = tuple(_frame(f"{frames_path}:{i}", line) for i, line in enumerate(lines, 1) if line)
    for before, after in pairwise(frames):
        if after.t_ns <= before.t_ns:
            raise DataError(f"{frames_path}: {after.t_ns} ns comes after {before.t_ns} ns; sort it")
    return Recording(tree, frames, about)


def save(recording: Recording, folder: Path) -> None:
    """Write a recording as `load` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, **recording.about}
    (folder / "device.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (folder / "tree.txt").write_text("".join(_lines(recording.tree)), encoding="utf-8")
    rows = [json.dumps(_frame_row(frame)) + "\n" for frame in recording.frames]
    (folder / "frames.jsonl").write_text("".join(rows), encoding="utf-8")


def parse_tree(text: str, name: str = "tree") -> dict[str, str | OSError]:
    r"""Lines of 'path = content' (\n and \t escaped) or 'path ! EACCES'; '#' starts a comment."""
    tree: dict[str, str | OSError] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        path, is_content, content = line.partition(" =")
        if is_content:
            tree[path] = _unescape(content.removeprefix(" ")) + "\n"
            continue
        path, is_error, code = line.partition(" ! ")
        if not is_error:
            raise DataError(
                f"{name}:{number}: '{line[:60]}' is neither 'path = content' nor 'path ! ERROR'"
            )
        tree[path] = _os_error(code.strip(), f"{name}:{number}")
    return tree


def _lines(tree: Tree) -> Iterable[str]:
    for path in sorted(tree):
        content = tree[path]
        if isinstance(content, OSError):
            yield f"{path} ! {errno.errorcode[content.errno or errno.EIO]}\n"
        else:
            escaped = content.removesuffix("\n").replace("\\", "\\\\")
            for short, long in (("\\n", "\n"), ("\\t", "\t")):
                escaped = escaped.replace(long, short)
            yield f"{path} = {escaped}\n"


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts, position = [], 0
    while position < len(text):
        pair = text[position : position + 2]
        parts.append(_ESCAPES.get(pair, pair[0]))
        position += 2 if pair in _ESCAPES else 1
    return "".join(parts)


def _os_error(code: str, where: str) -> OSError:
    value = getattr(errno, code, None)
    if not isinstance(value, int):
        raise DataError(f"{where}: '{code}' is no error of the system; use one such as EACCES")
    return OSError(value, code)


def _json(where: object, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DataError(f"{where} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{where} must hold a JSON object")
    return value


def _frame(where: str, line: str) -> Frame:
    row = _json(where, line)
    t_ns = row.get("t_ns")
    if not isinstance(t_ns, int):
        raise DataError(f"{where}: a frame needs an integer t_ns, found {t_ns!r}")
    changes: dict[str, str | OSError | None] = dict.fromkeys(row.get("gone", ()))
    changes |= {path: f"{content}\n" for path, content in row.get("set", {}).items()}
    changes |= {path: _os_error(code, where) for path, code in row.get("fail", {}).items()}
    return Frame(t_ns, changes)


def _frame_row(frame: Frame) -> dict[str, Any]:
    row: dict[str, Any] = {"t_ns": frame.t_ns}
    for path, content in sorted(frame.changes.items()):
        if content is None:
            row.setdefault("gone", []).append(path)
        elif isinstance(content, OSError):
            row.setdefault("fail", {})[path] = errno.errorcode[content.errno or errno.EIO]
        else:
            row.setdefault("set", {})[path] = content.removesuffix("\n")
    return row


def _covered(path: str, fixed: set[str]) -> bool:
    return any(path == f or path.startswith(f"{f}/") for f in fixed)
