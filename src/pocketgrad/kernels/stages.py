"""Which launches share an enqueue: small ones after another in one work-item, independent ones side
by side. See docs/adr/0012.

Sees launches and what they read and write, never what they compute. Times are guesses that only
have to tell a launch that costs less than its enqueue from one that does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pocketgrad.ir.core import Value
from pocketgrad.kernels.bundle import bundleable
from pocketgrad.kernels.spec import Launch, Place, Rendered
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

TINY_NS = 4_000  # a launch of so much work is done sooner by one core than another is woken
LARGE_NS = 200_000  # beside work of this size an enqueue is nothing: it stays where it is
TRACK_NS = 4_000  # of tiny launches that wait for nothing of each other on one work-item
MAX_LAUNCHES = 64  # in an enqueue; compile time grows with them
FAR_NBYTES = 1 << 16  # results larger than this are not computed stages ahead of their readers


@dataclass(eq=False)
class _Unit:
    """A launch, with the views it reads and writes."""

    number: int
    launch: Launch
    reads: list[View]
    writes: list[View]
    ns: float
    stage: int = -1
    track: _Track | None = None


@dataclass(eq=False)
class _Track:
    """Launches that one work-item does after another, or a single one with all its items."""

    units: list[_Unit]
    serial: bool

    @property
    def ns(self) -> float:
        return sum(unit.ns for unit in self.units)


@dataclass(eq=False)
class _Stage:
    tracks: list[_Track] = field(default_factory=list)
    closed: bool = False

    @property
    def units(self) -> list[_Unit]:
        return [unit for track in self.tracks for unit in track.units]


def places(
    steps: Sequence[Step], rendered: Sequence[Rendered], wanted: int
) -> list[tuple[Place, ...]]:
    """The place of every launch of every step; each has an enqueue alone if ``wanted`` is 0.

    ``wanted``: work-items that keep the device busy; more only cost time, and every core reads what
    another one wrote last.
    """
    units: list[list[_Unit]] = []
    count = 0
    for step, one in zip(steps, rendered, strict=True):
        units.append([_unit(step, one, launch, count + i) for i, launch in enumerate(one.launches)])
        count += len(one.launches)
    stages = _Stages(bool(wanted))
    for unit in (u for mine in units for u in mine):
        stages.add(unit)
    number = {track: i for s in stages.stages for i, track in enumerate(s.tracks)}
    found = []
    for mine in units:
        here = []
        for u in mine:
            assert u.track is not None
            here.append(
                Place(u.stage, number[u.track], u.track.serial, wanted if stages.social(u) else 0)
            )
        found.append(tuple(here))
    return found


def _unit(step: Step, rendered: Rendered, launch: Launch, number: int) -> _Unit:
    made: dict[Value, list[View]] = {}
    for view in step.writes.values():
        made.setdefault(view.base, []).append(view)
    reads = list(step.reads.values())  # all of them: no launch of a step waits in its middle
    writes = [
        view
        for view in launch.args
        if view.base in rendered.scratch or any(_overlap(view, w) for w in made.get(view.base, ()))
    ]
    share = _work_ns(step) / len(rendered.launches)
    return _Unit(number, launch, reads, writes, share)


def _work_ns(step: Step) -> float:
    """About how long one core needs."""
    nodes = [n for n in step.nodes if n.inputs]
    flops = sum(n.cost.flops for n in nodes)
    heavy = max((n.cost.flops for n in nodes if n.op.label() in _Stages.HEAVY), default=0)
    nbytes = sum(v.type.nbytes for v in (*step.reads, *step.writes))
    return heavy / 120 + (flops - heavy) / 8 + nbytes / 20


class _Stages:
    """Launches in order, each put into the earliest enqueue that it may join."""

    HEAVY: ClassVar = ("mat_mul", "conv2d", "conv2d_grad_input", "conv2d_grad_weight")

    def __init__(self, bundles: bool) -> None:
        self.bundles = bundles
        self.stages: list[_Stage] = []
        self._seen: dict[Value, list[tuple[View, bool, _Unit]]] = {}

    def add(self, unit: _Unit) -> None:
        before = self._needs(unit)
        stage = max((u.stage for u in before), default=0)
        if not self._joins(unit, stage, before):
            first = stage + bool(before)
            options = range(max(first, self._earliest(unit)), len(self.stages))
            if not any(self._joins(unit, s, ()) for s in options):
                self.stages.append(_Stage(closed=not self.social(unit)))
                self._put(unit, len(self.stages) - 1, _Track([], self._tiny(unit)))
        for view in unit.reads:
            self._seen.setdefault(view.base, []).append((view, False, unit))
        for view in unit.writes:
            self._seen.setdefault(view.base, []).append((view, True, unit))

    def _earliest(self, unit: _Unit) -> int:
        """Large results wait for their turn: computed ahead, they would only take up memory."""
        written = sum(view.base.type.nbytes for view in unit.writes)
        return 0 if written <= FAR_NBYTES else len(self.stages) - 2

    def _needs(self, unit: _Unit) -> list[_Unit]:
        """Earlier launches that must be over before this one reads or writes."""
        found: dict[_Unit, None] = {}
        for views, writes in ((unit.reads, False), (unit.writes, True)):
            for view in views:
                for other, written, user in self._seen.get(view.base, ()):
                    if (written or writes) and user is not unit and _overlap(view, other):
                        found[user] = None
        return list(found)

    def social(self, unit: _Unit) -> bool:
        """Whether it may share an enqueue at all."""
        return self.bundles and unit.ns < LARGE_NS and bundleable(unit.launch)

    def _tiny(self, unit: _Unit) -> bool:
        return unit.ns <= TINY_NS and self.social(unit)

    def _joins(self, unit: _Unit, number: int, before: Sequence[_Unit]) -> bool:
        """Put a launch into a stage if it is legal behind or beside what is there already."""
        if number >= len(self.stages) or not self.social(unit):
            return False
        stage = self.stages[number]
        if stage.closed or len(stage.units) >= MAX_LAUNCHES:
            return False
        behind = list(dict.fromkeys(u.track for u in before if u.stage == number and u.track))
        if behind:
            if not self._tiny(unit) or not all(track.serial for track in behind):
                return False
            self._put(unit, number, self._one(stage, behind))
            return True
        company = [t for t in stage.tracks if t.serial and t.ns + unit.ns <= TRACK_NS]
        tiny = self._tiny(unit)
        self._put(unit, number, company[0] if tiny and company else _Track([], tiny))
        return True

    @staticmethod
    def _one(stage: _Stage, tracks: list[_Track]) -> _Track:
        """Several serial tracks as one, in the order of their launches."""
        first, *rest = tracks
        first.units = sorted((u for t in tracks for u in t.units), key=lambda u: u.number)
        for unit in first.units:
            unit.track = first
        for track in rest:
            stage.tracks.remove(track)
        return first

    def _put(self, unit: _Unit, number: int, track: _Track) -> None:
        stage = self.stages[number]
        if track not in stage.tracks:
            stage.tracks.append(track)
        track.units.append(unit)
        unit.stage, unit.track = number, track


def _overlap(a: View, b: View) -> bool:
    (a0, a1), (b0, b1) = a.span, b.span
    return a.base is b.base and a0 < b1 and b0 < a1
