"""The files a profile is saved as: one table, which `save` walks. A file whose extra package is
missing is told, with how to get it; the others are written.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.trace.model import Absent
from pocketgrad.trace.profile import Profile, to_json


@dataclass(frozen=True, slots=True)
class Exporter:
    """One file: what it is, and how its content is made."""

    file: str
    what: str
    render: Callable[[Profile], bytes]
    package: str = ""  # needs this one
    extra: str = ""  # of pocketgrad, which installs it


def _by(module: str) -> Callable[[Profile], bytes]:
    """Its ``render``; imported only when asked for."""

    def render(profile: Profile) -> bytes:
        content: bytes = import_module(f"pocketgrad.report.{module}").render(profile)
        return content

    return render


def _table(name: str, form: str) -> Callable[[Profile], bytes]:
    def render(profile: Profile) -> bytes:
        tables = import_module("pocketgrad.report.tables")
        content: bytes = getattr(tables, form)(getattr(tables, name)(profile))
        return content

    return render


def _json(profile: Profile) -> bytes:
    return json.dumps(to_json(profile), separators=(",", ":"), ensure_ascii=False).encode()


_PARQUET = ("pyarrow", "parquet")
_TABLES = (
    ("launches", "every launch of every step"),
    ("ops", "time, bytes, flops and joules by operation"),
    ("samples", "every sample of every sensor"),
)

ALL: tuple[Exporter, ...] = (
    Exporter("report.html", "the page to look at, in one file", _by("page")),
    Exporter("profile.json", "all of it, for `pocketgrad report` and for programs", _json),
    Exporter(
        "trace.pftrace",
        "for ui.perfetto.dev",
        _by("perfetto"),
        package="perfetto",
        extra="perfetto",
    ),
    Exporter("trace.json", "for ui.perfetto.dev and chrome://tracing", _by("chrome")),
    *(Exporter(f"{name}.csv", what, _table(name, "csv_bytes")) for name, what in _TABLES),
    *(
        Exporter(f"{name}.parquet", what, _table(name, "parquet_bytes"), *_PARQUET)
        for name, what in _TABLES
    ),
)


@dataclass(frozen=True, slots=True)
class Saved:
    """What was written, and what could not be."""

    paths: tuple[Path, ...]
    absent: tuple[Absent, ...]


def save(
    profile: Profile,
    directory: str | Path,
    only: Iterable[str] = (),
    tell: Callable[[str], None] = lambda file: None,
) -> Saved:
    """Write all files, or those named in ``only``; ``tell`` hears of each before it is made."""
    folder = Path(directory)
    known = {exporter.file: exporter for exporter in ALL}
    wanted = list(only) or list(known)
    for name in wanted:
        if name not in known:
            raise UnknownNameError("file of a profile", name, known)
    folder.mkdir(parents=True, exist_ok=True)
    paths, absent = [], []
    for exporter in (known[name] for name in wanted):
        if missing := why_missing(exporter):
            absent.append(Absent(exporter.file, missing))
            continue
        tell(exporter.file)
        path = folder / exporter.file
        path.write_bytes(exporter.render(profile))
        paths.append(path)
    return Saved(tuple(paths), tuple(absent))


def why_missing(exporter: Exporter) -> str:
    """Why its file cannot be made here, and what to do; empty when it can."""
    if not exporter.package or importlib.util.find_spec(exporter.package):
        return ""
    how = f"pip install 'pocketgrad[{exporter.extra}]'"
    return f"the package {exporter.package} is not installed: {how}"
