"""Runs participants one at a time, A B A B: agreement first, then timed blocks, then agreement.

Every participant lives in its own process and waits while another works. A block starts from the
first weights, so all blocks do the same work and end on the same loss.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pocketgrad.bench.agreement import FIRST_STEPS, disagreement, weakness
from pocketgrad.bench.api import Participant
from pocketgrad.bench.load import Load, Reading, usage
from pocketgrad.bench.remote import OutError

LEAD = 1  # untimed steps before a timed block: caches are warm, momentum is there
GRID: tuple[int, ...] = tuple(
    d * 10**e for e in range(4) for d in (2, 4, 10)
)  # steps of a block: even numbers
SETTLE_S = 0.03  # threads of the participant before stop spinning
LEAST_BLOCKS = 5
PATIENCE = 3.0  # times the seconds wanted, before a slow participant gets fewer blocks


class Contestant(Protocol):
    """A participant that answers commands: `remote.Remote`, or a mock."""

    participant: Participant

    @property
    def pid(self) -> int | None:
        """Its process, while there is one."""

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Run a command; OutError when it is out."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True)
class Settings:
    """How long to measure: ``rounds`` blocks per participant, ``seconds`` together."""

    seconds: float = 5.0
    rounds: int = 15
    steps: int | None = None  # of a block; found by calibration if None
    threads: int = 1


@dataclass(frozen=True)
class Block:
    """Some timed steps. ``others`` and ``idlers``: cores that something else kept busy."""

    steps: int
    ns: int
    cpu_ns: int
    loss: float
    others: float | None = None
    stolen: float | None = None
    idlers: Mapping[str, float] = field(default_factory=dict)

    @property
    def step_s(self) -> float:
        """Seconds of one step."""
        return self.ns / 1e9 / self.steps


@dataclass
class Entry:
    """What was found out about one participant; filled in as the run goes on."""

    participant: Participant
    outcome: str = "not measured"
    reason: str = ""
    loaded: dict[str, Any] = field(default_factory=dict)
    opened: dict[str, Any] = field(default_factory=dict)
    first_losses: list[float] = field(default_factory=list)
    steps: int = 0
    warmups: list[Block] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def took_part(self) -> bool:
        """Whether its times count."""
        return self.outcome == "ok" and bool(self.blocks)

    @property
    def times(self) -> list[float]:
        """Seconds per step of every block."""
        return [block.step_s for block in self.blocks]


class Runner:
    """One comparison."""

    def __init__(
        self,
        contestants: Sequence[Contestant],
        folder: Path,
        settings: Settings,
        load: Load | None = None,
        progress: Callable[[str], None] = lambda text: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.folder, self.settings = folder, settings
        self.contestants = {c.participant.name: c for c in contestants}
        self.entries = {c.participant.name: Entry(c.participant) for c in contestants}
        self.load, self.progress, self.pause = load, progress, pause
        self.gauges: dict[str, Contestant] = {}  # by device: processes that measure its ceilings
        self.ceilings: dict[str, list[dict[str, float]]] = {}
        self.reference = ""
        self.interrupted = False
        self.notes: list[str] = []

    def run(self) -> dict[str, Entry]:
        """All of it; Ctrl-C ends the measurement and keeps what was measured."""
        try:
            for stage in (
                self._open,
                self._agree,
                self._calibrate,
                self._gauge,
                self._measure,
                self._gauge,
            ):
                stage()
        except KeyboardInterrupt:
            self.interrupted = True
            self.notes.append("interrupted: the results are of the blocks measured until then")
        try:
            self._verify()
            self._conclude()
        except KeyboardInterrupt:
            self.interrupted = True
            self.notes.append("interrupted before the losses after the timed steps were compared")
        finally:
            for contestant in (*self.contestants.values(), *self.gauges.values()):
                contestant.close()
        return self.entries

    # ---- stages ---------------------------------------------------------------------------------

    def _open(self) -> None:
        """One after the other, so that start-up times are undisturbed."""
        for name, entry in self.entries.items():
            self.progress(f"{name}: start and first step")
            threads = self.settings.threads
            try:
                ask = self.contestants[name].ask
                entry.loaded = ask("load")
                entry.opened = ask("open", folder=str(self.folder), threads=threads)
                entry.first_losses = ask("losses", at=list(FIRST_STEPS))["losses"]
                entry.outcome = "ok"
            except OutError as error:
                self._out(entry, error)

    def _agree(self) -> None:
        """The reference is PyTorch as it comes, else the first that computes in float32."""
        able = [n for n, e in self.entries.items() if e.outcome == "ok"]
        single = [n for n in able if self.entries[n].participant.variant.precision == "float32"]
        if not single:
            self.notes.append("nobody computes in float32, so losses were compared with nobody's")
            return
        self.reference = next((n for n in single if n.startswith("torch:")), single[0])
        wanted = self.entries[self.reference].first_losses
        self._note(weakness(wanted, "float32"))
        for name in able:
            entry = self.entries[name]
            precision = entry.participant.variant.precision
            wrong = disagreement(entry.first_losses, wanted, FIRST_STEPS, precision)
            if wrong:
                entry.outcome, entry.reason = "disagrees", f"{wrong}, as {self.reference} has it"

    def _calibrate(self) -> None:
        """Blocks of more and more steps until one takes about its share of the time."""
        for name, entry in self._running():
            self.progress(f"{name}: warm-up")
            target = self.settings.seconds / self.settings.rounds
            steps = self.settings.steps or GRID[0]
            while entry.outcome == "ok":
                block = self._block(name, steps, entry)
                if block is None:
                    break
                entry.warmups.append(block)
                fitting = fitting_steps(block.step_s, target)
                if self.settings.steps or fitting <= steps:
                    break
                steps = min(fitting, steps * 50)
            entry.steps = steps

    def _measure(self) -> None:
        """Rounds of one block each."""
        limit = self.settings.seconds * PATIENCE
        for turn in range(self.settings.rounds):
            self.progress(f"round {turn + 1} of {self.settings.rounds}")
            for name, entry in self._running():
                spent = sum(block.ns for block in entry.blocks) / 1e9
                if spent > limit and len(entry.blocks) >= LEAST_BLOCKS:
                    continue
                block = self._block(name, entry.steps, entry)
                if block is not None:
                    entry.blocks.append(block)

    def _gauge(self) -> None:
        """What each device can do at best, before the blocks and after them."""
        for device, gauge in self.gauges.items():
            self.progress(f"{device}: ceilings")
            self.pause(SETTLE_S)
            try:
                self.ceilings.setdefault(device, []).append(gauge.ask("ceilings")["ceilings"])
            except OutError as error:
                self._note(f"the ceilings of {device} are not known: {error}")

    def _verify(self) -> None:
        """Losses after the timed steps: of all blocks alike, and as the reference has them."""
        measured = {n: e for n, e in self.entries.items() if e.took_part}
        if not measured or self.reference not in self.entries:
            return
        at = sorted({1, *(LEAD + e.steps for e in measured.values())})
        self.progress(f"{self.reference}: losses after {at[-1]} steps, to compare")
        try:
            found = self.contestants[self.reference].ask("losses", at=at)["losses"]
        except OutError as error:
            self._out(self.entries[self.reference], error)
            return
        wanted = dict(zip(at, found, strict=True))
        for entry in measured.values():
            last = LEAD + entry.steps
            expected = [wanted[1], wanted[last]]
            precision = entry.participant.variant.precision
            losses = dict.fromkeys(block.loss for block in entry.blocks)
            for loss in losses:
                wrong = disagreement([wanted[1], loss], expected, (1, last), precision)
                if wrong:
                    entry.outcome = "skips work"
                    entry.reason = f"after the timed steps {wrong}, as {self.reference} has it"

    def _conclude(self) -> None:
        """Memory, and what the sessions tell."""
        for name, entry in self._running():
            try:
                entry.told = self.contestants[name].ask("facts")
            except OutError as error:
                self._out(entry, error)

    # ---- parts ----------------------------------------------------------------------------------

    def _running(self) -> list[tuple[str, Entry]]:
        return [(n, e) for n, e in self.entries.items() if e.outcome == "ok"]

    def _out(self, entry: Entry, error: OutError) -> None:
        entry.outcome, entry.reason = error.outcome, error.reason

    def _note(self, text: str) -> None:
        if text:
            self.notes.append(text)

    def _block(self, name: str, steps: int, entry: Entry) -> Block | None:
        self.pause(SETTLE_S)
        pids = {c.pid: n for n, c in self.contestants.items() if c.pid is not None}
        before = self._reading(list(pids))
        try:
            reply = self.contestants[name].ask("block", steps=steps, lead=LEAD)
        except OutError as error:
            self._out(entry, error)
            return None
        used = usage(before, self._reading(list(pids)))
        times = (reply["ns"], reply["cpu_ns"], reply["loss"])
        if used is None:
            return Block(steps, *times)
        idlers = {pids[p]: u for p, u in used.processes.items() if pids[p] != name and u > 0}
        return Block(steps, *times, used.others, used.stolen, idlers)

    def _reading(self, pids: list[int]) -> Reading | None:
        return self.load.read(pids) if self.load else None


def fitting_steps(step_s: float, target_s: float) -> int:
    """The largest number of the grid whose steps take no longer than the target."""
    return max((n for n in GRID if n * step_s <= target_s), default=GRID[0])
