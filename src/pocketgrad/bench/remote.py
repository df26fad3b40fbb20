"""A participant as the runner sees it: a child process, its commands, and how it may end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pocketgrad
from pocketgrad.base.config import environment_with
from pocketgrad.base.errors import PocketgradError
from pocketgrad.bench.api import Participant

TIMEOUT_S = 900.0  # of one command: a compiler may take minutes, hardly a quarter of an hour
CLOSING_S = 10.0
# Finds this package by its folder and nothing else: another environment keeps its own packages.
BOOT = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location(
    "pocketgrad", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]])
module = importlib.util.module_from_spec(spec)
sys.modules["pocketgrad"] = module
spec.loader.exec_module(module)
del sys.argv[1]
from pocketgrad.bench.worker import main
main()
"""


class OutError(PocketgradError):
    """A participant is out, with an outcome in a word or two and the reason."""

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(f"{outcome}: {reason}")
        self.outcome, self.reason = outcome, reason


class Remote:
    """A process that runs `worker`, started at its first command."""

    def __init__(
        self,
        participant: Participant,
        python: str = sys.executable,
        env: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.participant, self.python, self.timeout_s = participant, python, timeout_s
        self.env = {**(env or {}), **participant.variant.env}
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._pending = b""

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Run a command there; OutError when it fails, crashes or hangs."""
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        reply: dict[str, Any] = json.loads(self._line())
        if "outcome" in reply:
            raise OutError(reply["outcome"], reply["reason"])
        return reply

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return self._process.pid if self._process else None

    def close(self) -> None:
        """Ask it to end, then make it."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            try:
                self.timeout_s = CLOSING_S
                self.ask("close")
                process.wait(CLOSING_S)
            except (OutError, OSError, subprocess.TimeoutExpired):
                self._kill(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        self._stderr.close()
        self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            variant = {**vars(self.participant.variant), "env": {}}
            package = str(Path(pocketgrad.__file__).parent)
            self._process = subprocess.Popen(
                [self.python, "-P", "-c", BOOT, package, self.participant.adapter,
                 json.dumps(variant)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
                env=environment_with(self.env), start_new_session=True,
            )  # fmt: skip
        return self._process

    def _line(self) -> bytes:
        """The next line of its answers."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        deadline = time.monotonic() + self.timeout_s
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                self._kill(process)
                raise OutError("hangs", f"no answer within {self.timeout_s:g} s")
            found = os.read(process.stdout.fileno(), 1 << 16)
            if not found:
                raise self._ended()
            self._pending += found
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _ended(self) -> OutError:
        """Why it is gone."""
        assert self._process is not None
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        said = f": {lines[-1][:300]}" if lines else ""
        if code == -signal.SIGKILL:
            return OutError("out of memory", f"killed, most likely for its memory{said}")
        if code < 0:
            return OutError("crashed", f"{signal.strsignal(-code)}{said}")
        return OutError("crashed", f"exit code {code}{said}")

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
