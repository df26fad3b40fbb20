"""The process of one participant: waits for commands as JSON lines, answers each with one.

Whatever a framework prints goes to stderr. Between commands the process does nothing at all.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from pocketgrad.bench.adapters import adapter
from pocketgrad.bench.api import Session, Variant
from pocketgrad.bench.task import NotWrittenError, load_task

KIB = 1024


class Worker:
    """Holds one session; every public method is a command."""

    def __init__(self, name: str, variant: Mapping[str, Any]) -> None:
        self.name, self.adapter, self.variant = name, adapter(name), Variant(**variant)
        self.session: Session | None = None

    def load(self) -> dict[str, Any]:
        """Import the framework."""
        begun = time.perf_counter_ns()
        try:
            version = self.adapter.version()
        except ImportError as error:
            advice = f"run 'pocketgrad bench setup {self.name}'"
            raise ImportError(f"{error}; {advice}") from None
        seconds = (time.perf_counter_ns() - begun) / 1e9
        return {"import_s": seconds, "version": version, "idle_nbytes": resident("VmRSS")}

    def open(self, folder: str, threads: int) -> dict[str, Any]:
        """Build the network, and make the first step, which compiles what was not compiled yet."""
        begun = time.perf_counter_ns()
        self.session = self.adapter.open_session(load_task(Path(folder), threads), self.variant)
        opened = time.perf_counter_ns()
        self.session.step()
        loss = self.session.sync()
        ended = time.perf_counter_ns()
        return {
            "open_s": (opened - begun) / 1e9,
            "first_step_s": (ended - opened) / 1e9,
            "loss": loss,
        }

    def losses(self, at: list[int]) -> dict[str, Any]:
        """From the first weights on, the losses of the steps of these numbers (from 1)."""
        session = self._session
        session.reset()
        found, done = [], 0
        for mark in at:
            for _ in range(mark - done):
                session.step()
            done = mark
            found.append(session.sync())
        return {"losses": found}

    def block(self, steps: int, lead: int) -> dict[str, Any]:
        """From the first weights on: ``lead`` steps, then so many timed ones, synchronised."""
        session = self._session
        session.reset()
        for _ in range(lead):
            session.step()
        if lead:
            session.sync()
        step = session.step
        cpu = time.process_time_ns()
        begun = time.perf_counter_ns()
        for _ in range(steps):
            step()
        loss = session.sync()
        ended = time.perf_counter_ns()
        return {"ns": ended - begun, "cpu_ns": time.process_time_ns() - cpu, "loss": loss}

    def ceilings(self) -> dict[str, Any]:
        """What the device of ours can do at best; no session is needed, none should be open."""
        from pocketgrad.bench.adapters import pocketgrad as ours

        return {"ceilings": ours.ceilings(self.variant)}

    def facts(self) -> dict[str, Any]:
        """Memory of the process, and what the session tells of itself."""
        found = dict(self._session.facts())
        return {"peak_nbytes": resident("VmHWM"), "now_nbytes": resident("VmRSS"), "facts": found}

    def close(self) -> dict[str, Any]:
        """Free what is held."""
        if self.session is not None:
            self.session.close()
        return {}

    @property
    def _session(self) -> Session:
        assert self.session is not None, "open comes first"
        return self.session


COMMANDS = ("load", "open", "losses", "block", "ceilings", "facts", "close")


def resident(key: str) -> int | None:
    """A line of /proc/self/status in bytes; None where there is none."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * KIB
    return None


def outcome_of(error: Exception) -> str:
    """In a word, why a participant could not take part."""
    text = f"{type(error).__name__} {error}".lower()
    if isinstance(error, NotWrittenError):
        return "not written"
    if isinstance(error, ImportError):
        return "absent"
    if isinstance(error, MemoryError) or ("alloc" in text and "memory" in text):
        return "out of memory"
    return "crashed"


def answer(command: Callable[..., dict[str, Any]], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a command gives, or its error as an outcome."""
    try:
        return command(**arguments)
    except Exception as error:  # any framework's; it becomes a line of the table
        text = " ".join(str(error).split())[:400]
        return {"outcome": outcome_of(error), "reason": f"{type(error).__name__}: {text}"}


def serve(worker: Worker, commands: IO[str], replies: IO[str]) -> None:
    """Until told to close, or until whoever asks is gone."""
    for line in commands:
        message = json.loads(line)
        name = message.pop("do")
        if name not in COMMANDS:
            raise ValueError(f"no command '{name}'")
        print(json.dumps(answer(getattr(worker, name), message)), file=replies, flush=True)
        if name == "close":
            return


def main() -> None:
    """Arguments: the adapter, and its variant as JSON."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints must not be taken for an answer
    serve(Worker(sys.argv[1], json.loads(sys.argv[2])), sys.stdin, replies)
    replies.close()
    sys.stdout.flush()
    os._exit(0)  # some drivers hang or crash when they are unloaded


if __name__ == "__main__":
    main()
