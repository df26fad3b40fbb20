"""Which kernel families a device got wrong, and when: verdicts kept by device and driver."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pocketgrad.backends.cachefile import read_object, write_whole
from pocketgrad.backends.runtimes import DeviceReport
from pocketgrad.base.config import settings


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a numeric check said about one kernel family on one device."""

    family: str
    ok: bool
    reason: str = ""  # of a failure: the case, what was expected, what came
    kernels: str = ""  # fingerprint of the kernels checked; another one makes the verdict void
    checked: str = ""  # UTC, ISO 8601; stamped when recorded


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The verdicts in a folder, one JSON file per device and driver."""

    folder: Path
    now: Callable[[], str] = _now

    def file(self, report: DeviceReport) -> Path:
        """Where the verdicts on this device with this driver are."""
        identity = (report.platform, report.platform_version, report.name, report.driver)
        name = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:24]
        return self.folder / f"{name}.json"

    def judged(self, report: DeviceReport) -> Mapping[str, Verdict]:
        """The verdicts by family; empty for a device that was never checked."""
        found = read_object(self.file(report)) or {}
        return {v.family: v for v in map(_verdict, found.get("verdicts", [])) if v is not None}

    def failed(self, report: DeviceReport) -> tuple[Verdict, ...]:
        """The families that must not run on this device."""
        return tuple(v for v in self.judged(report).values() if not v.ok)

    def record(self, report: DeviceReport, verdicts: Iterable[Verdict]) -> None:
        """Add ``verdicts``, replacing those on the same families."""
        stamped = (dataclasses.replace(v, checked=v.checked or self.now()) for v in verdicts)
        kept = {**self.judged(report), **{v.family: v for v in stamped}}
        payload = {
            "platform": report.platform,
            "device": report.name,
            "driver": report.driver,
            "verdicts": [dataclasses.asdict(kept[family]) for family in sorted(kept)],
        }
        write_whole(self.file(report), json.dumps(payload, indent=1))

    def forget(self, report: DeviceReport) -> None:
        """Drop all verdicts on this device: it is checked again at its next use."""
        self.file(report).unlink(missing_ok=True)


def _verdict(fields: Any) -> Verdict | None:
    try:
        return Verdict(**fields)
    except TypeError:  # written by another version: as good as not checked
        return None


def quarantine() -> Quarantine:
    """The one in the user's cache folder."""
    return Quarantine(settings().cache_dir / "quarantine")
