"""The numeric self-check of one device in a process of its own, so that a crash ends only that.

`check` is what commands call; `python -m pocketgrad.cli.selfcheck IDENT` is the child.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pocketgrad.base.config import settings
from pocketgrad.base.errors import PocketgradError

if TYPE_CHECKING:
    from pocketgrad.backends.quarantine import Verdict
    from pocketgrad.backends.runtimes import DeviceReport

RUNNER = "pocketgrad.engine.selfcheck"
PATIENCE = 10  # families times kernels to build: this many times what a driver may take to answer


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdicts on one device, or why there are none."""

    device: str
    verdicts: tuple[Verdict, ...] = ()
    problem: str = ""


def check(device: DeviceReport) -> Outcome:
    """Run the self-check on ``device`` in a child and record its verdicts in the quarantine."""
    from pocketgrad.backends.quarantine import Verdict, quarantine

    answer, problem = _ask(device.ident, settings().probe_timeout_s * PATIENCE)
    verdicts = tuple(Verdict(**fields) for fields in answer)
    if verdicts:
        quarantine().record(device, verdicts)
    return Outcome(device.ident, verdicts, problem)


def _ask(ident: str, timeout_s: float) -> tuple[list[dict[str, Any]], str]:
    """What the child said about device ``ident``, and what went wrong with it."""
    command = [sys.executable, "-P", "-m", "pocketgrad.cli.selfcheck", ident]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            code = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return [], f"no answer within {timeout_s:g} s"
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        out.seek(0)
        err.seek(0)
        words = err.read().decode(errors="replace").strip().splitlines()
        last = f": {words[-1].strip()[:300]}" if words else ""
        if code < 0:
            return [], f"the check crashed ({signal.strsignal(-code) or -code}){last}"
        if code > 0:
            return [], f"the check ended with exit code {code}{last}"
        answer: list[dict[str, Any]] = json.loads(out.read())
        return answer, ""


def main(ident: str) -> int:
    """The child: check every kernel family on device ``ident`` and print the verdicts as JSON."""
    channel = os.dup(1)  # drivers print to stdout at will
    os.dup2(2, 1)
    backends = importlib.import_module("pocketgrad.backends")
    runner = importlib.import_module(RUNNER)
    try:
        verdicts = runner.self_check(backends.open_backend(ident))
    except PocketgradError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    text = json.dumps([dataclasses.asdict(verdict) for verdict in verdicts])
    os.write(channel, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
