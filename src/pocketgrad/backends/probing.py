"""Runs `probe` on drivers, one child process each, and turns how a child ended into a report.

Reports are kept on disk by library, size and time of change: a second start loads no driver twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from pocketgrad.backends import probe
from pocketgrad.backends.advice import advice_for
from pocketgrad.backends.cachefile import read_object, write_whole
from pocketgrad.backends.icds import Icd, folder_of
from pocketgrad.backends.runtimes import (
    DeviceReport,
    Outcome,
    RuntimeReport,
    device_from_json,
    runtime_from_json,
    to_json,
)
from pocketgrad.base.config import Settings

FORMAT = 1  # of the cached reports; raise it when the probe asks for more
_STAGES = {
    "load": "while its library was loaded",
    "devices": "while it listed its devices",
    "build": "while it built and ran a first kernel",
    "done": "after it had answered",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended and what it had said until then."""

    said: Sequence[dict[str, Any]]
    code: int | None  # None: it had to be killed
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class _Child:
    """A running probe; its words go to files, so that it can neither fill nor hold a pipe."""

    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]

    def end(self, deadline_s: float) -> Ending:
        """Wait for it until ``deadline_s`` on the monotonic clock, then kill it."""
        code: int | None
        try:
            code = self.process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            code = None
        words = []
        for file in (self.out, self.err):
            file.seek(0)
            words.append(file.read().decode(errors="replace"))
        return Ending(_objects(words[0]), code, words[1])

    def kill(self) -> None:
        """Kill it with whatever the driver has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _objects(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:  # cut off by a crash: what came before it counts
            break
    return found


def probe_all(
    icds: Sequence[Icd], config: Settings, script: str = probe.__file__
) -> list[RuntimeReport]:
    """One child per driver, all at once, so that one that hangs delays no other."""
    children: list[_Child | None] = []
    deadline_s = time.monotonic() + config.probe_timeout_s
    try:
        children.extend(None if icd.problem else _start(icd, config, script) for icd in icds)
        return [
            _report(icd, "load failure", "load", icd.problem)
            if child is None
            else judge(icd, child.end(deadline_s), config)
            for icd, child in zip(icds, children, strict=True)
        ]
    finally:
        for child in children:
            if child is not None:
                child.kill()  # only after an interrupt is one still running
                child.out.close()
                child.err.close()


def _start(icd: Icd, config: Settings, script: str) -> _Child:
    command = [sys.executable, "-P", script, str(folder_of([icd], config)), icd.library]
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  closed by the caller
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )
    return _Child(process, out, err)


def judge(icd: Icd, ending: Ending, config: Settings) -> RuntimeReport:
    """What a child's words and end say about its driver."""
    last = ending.said[-1] if ending.said else {"stage": "load"}
    stage = str(last["stage"])
    where = _STAGES[stage]
    listed: list[dict[str, Any]] = next(
        (s["devices"] for s in reversed(ending.said) if "devices" in s), []
    )
    devices = tuple(device_from_json(fields) for fields in listed)
    if ending.code is None:
        reason = f"no answer within {config.probe_timeout_s:g} s, {where}"
        return _report(icd, "hanging", stage, reason, devices)
    if ending.code < 0:
        name = signal.strsignal(-ending.code) or f"signal {-ending.code}"
        reason = f"{name} {where}{_last_words(ending)}"
        return _report(icd, "crashed", stage, reason, devices)
    if "refusal" in last:
        outcome: Outcome = "load failure" if stage == "load" else "no devices"
        return _report(icd, outcome, stage, str(last["refusal"]))
    if ending.code > 0 or stage != "done":
        outcome = "load failure" if stage == "load" else "crashed"
        reason = f"exit code {ending.code} {where}{_last_words(ending)}"
        return _report(icd, outcome, stage, reason, devices)
    if not devices:
        return _report(icd, "no devices", stage, "the driver answers, and has no device")
    return _report(icd, "ok", stage, "", devices)


def _last_words(ending: Ending) -> str:
    lines = [line.strip() for line in ending.stderr.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""


def _report(
    icd: Icd, outcome: Outcome, stage: str, reason: str, devices: Sequence[DeviceReport] = ()
) -> RuntimeReport:
    if outcome != "ok":
        devices = [replace(d, unusable=d.unusable or f"its driver: {outcome}") for d in devices]
    advice = "" if outcome == "ok" else advice_for(outcome, reason, icd.library)
    return RuntimeReport(icd.library, icd.origin, outcome, stage, reason, advice, tuple(devices))


def _cache_file(icd: Icd, config: Settings) -> Path:
    """Named by the library as it is now, the interpreter and the machine (homes may be shared)."""
    path = icd.path
    stat = path.stat() if path else None
    identity = (
        FORMAT,
        icd.library,
        str(path),
        (stat.st_mtime_ns, stat.st_size) if stat else None,
        sys.executable,
        platform.node(),
    )
    name = hashlib.sha256(repr(identity).encode()).hexdigest()[:24]
    return config.cache_dir / "runtimes" / f"{name}.json"


def remembered(icd: Icd, config: Settings) -> RuntimeReport | None:
    """The cached report on a driver, if its library is still the same file."""
    if icd.problem:
        return None
    fields = read_object(_cache_file(icd, config))
    if fields is None:
        return None
    try:
        return replace(runtime_from_json(fields), origin=icd.origin)
    except (TypeError, KeyError):  # written by another version
        return None


def remember(icd: Icd, report: RuntimeReport, config: Settings) -> None:
    """Keep a report, so that a later start pays nothing."""
    if not icd.problem:
        write_whole(_cache_file(icd, config), json.dumps(to_json(report), indent=1))
