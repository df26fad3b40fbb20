"""Running named commands one after another or side by side, and one line per command at the end.

Shared by check and test. It decides nothing about what is run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAST = "not device and not slow and not perf and not fuzz and not peer"
NOTHING_COLLECTED = 5  # pytest's exit code


@dataclass(frozen=True)
class Step:
    """A named command, run in the project's root."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """How a step ended; ``last_line`` is the last it printed."""

    step: Step
    code: int
    seconds: float
    output: str

    @property
    def last_line(self) -> str:
        """The last line with text in it."""
        return next((t for t in reversed(self.output.splitlines()) if t.strip()), "no output")

    def row(self) -> str:
        """One line of the summary."""
        empty = "no tests ran" in self.last_line
        state = "FAIL" if self.code else "none" if empty else "ok  "
        return f"{state} {self.step.name:<28} {self.seconds:6.1f} s  {self.last_line.strip('= ')}"


def enter_venv() -> None:
    """Continue in the project's .venv when started by another interpreter."""
    venv = ROOT / ".venv"
    if venv.is_dir() and Path(sys.prefix).resolve() != venv.resolve():
        python = str(venv / "bin" / "python")
        os.execv(python, [python, *sys.argv])


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    """A command of this environment, or a script of tools/."""
    script = ROOT / "tools" / name
    if script.exists():
        return (sys.executable, str(script), *arguments)
    return (str(Path(sys.executable).parent / name), *arguments)


def pytest(marks: str, *arguments: str) -> tuple[str, ...]:
    """A pytest run over the tests that ``marks`` selects, on all cores."""
    return (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "auto",
        "--maxprocesses=8",
        "-m",
        marks,
        *arguments,
    )


def run(step: Step, live: bool = False) -> Outcome:
    """Run one step; ``live`` shows its output while it comes."""
    start = time.monotonic()
    lines: list[str] = []
    try:
        process = subprocess.Popen(
            step.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except FileNotFoundError:
        missing = f"{step.command[0]} is not installed; run 'make test' once, which sets it up\n"
        return Outcome(step, 127, 0.0, missing)
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if live:
                print(line, end="", flush=True)
    return Outcome(step, process.returncode, time.monotonic() - start, "".join(lines))


def run_together(steps: list[Step]) -> list[Outcome]:
    """Run independent steps side by side."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(run, steps))


def conclude(outcomes: list[Outcome]) -> int:
    """Print the summary; the exit code."""
    print("\n" + "\n".join(o.row() for o in outcomes))
    failed = [o.step.name for o in outcomes if o.code]
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall passed")
    return 1 if failed else 0
