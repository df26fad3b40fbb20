"""Graph to Executable: the order of passes, schedule, kernels, memory plan and binding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pocketgrad.backends.api import Backend, Lowered
from pocketgrad.engine.executable import Executable
from pocketgrad.ir.core import Graph, Value
from pocketgrad.kernels.stages import places
from pocketgrad.passes.pipeline import optimise
from pocketgrad.plan.layout import Layout, channels_last
from pocketgrad.plan.memory import Lifetime, place
from pocketgrad.plan.plan import Plan, Slot, Step
from pocketgrad.plan.schedule import Schedule, in_place, schedule
from pocketgrad.plan.views import View

HEAPS = 16  # work-items per core: enough to even out what else the cores do
MAX_BUFFERS = 100  # a pointer each: 800 of the 1,024 bytes of arguments that all devices take


def compile_graph(graph: Graph, backend: Backend, poison: bool = False) -> Executable:
    """Plan a graph for a backend and bind it. ``poison`` fills the arena with NaN first (tests)."""
    plan, lowered = plan_graph(graph, backend)
    return Executable(plan, lowered, backend, poison)


def plan_graph(
    graph: Graph, backend: Backend, strict: bool = False, layout: Layout | None = None
) -> tuple[Plan, list[Lowered]]:
    """The plan of a graph on a backend, and its steps with their kernels.

    ``strict``: no kernels that round otherwise than the sums they stand for (Winograd's).
    ``layout``: which images lie channels-last, whatever suits the device.
    """
    graph, info = optimise(graph), backend.info
    lanes = info.vector_width if layout else info.image_lanes
    scheduled = schedule(graph, lanes, layout or channels_last)
    lowered = [backend.lower(step, strict) for step in scheduled.steps]
    lowered = _bundled(graph, lowered, backend)
    scheduled = replace(scheduled, steps=tuple(low.step for low in lowered))
    slots, buffers = _memory(graph, scheduled, lowered, backend.info.base_align_nbytes)
    return Plan(graph, scheduled.steps, slots, buffers, scheduled.views), lowered


def _bundled(graph: Graph, lowered: Sequence[Lowered], backend: Backend) -> list[Lowered]:
    """Steps in the order of the enqueues their launches are in."""
    few = len(graph.inputs) < MAX_BUFFERS
    found = places(
        [low.step for low in lowered],
        [low.rendered for low in lowered],
        HEAPS * backend.info.compute_units if backend.info.kind == "cpu" and few else 0,
    )
    placed = [replace(low, places=mine) for low, mine in zip(lowered, found, strict=True)]
    last, order = 0, []
    for i, low in enumerate(placed):
        last = low.places[0].stage if low.places else last
        order.append((last, i))
    return [placed[i] for _, i in sorted(order)]


def _memory(
    graph: Graph, scheduled: Schedule, lowered: Sequence[Lowered], align: int
) -> tuple[dict[Value, Slot], dict[str, int]]:
    """Inputs have buffers of their own and persist; everything else shares the arena."""
    slots = {v: Slot(v.name, 0, v.type.nbytes) for v in graph.inputs}
    buffers = {v.name: v.type.nbytes for v in graph.inputs}
    lives = _lifetimes(graph, scheduled, lowered, set(graph.inputs))
    placed = place(lives, _heirs(scheduled, lowered, lives), max(64, align))
    for value, offset in placed.offsets.items():
        slots[value] = Slot("arena", offset, lives[value].nbytes)
    if lives:
        buffers["arena"] = placed.nbytes
    return slots, buffers


def _lifetimes(
    graph: Graph, scheduled: Schedule, lowered: Sequence[Lowered], inputs: set[Value]
) -> dict[Value, Lifetime]:
    """From the first enqueue that knows a value to the last; within one there is no order."""
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    times = _times(lowered)
    for step, low, (begin, end) in zip(scheduled.steps, lowered, times, strict=True):
        used = [view.base for view in (*step.reads.values(), *step.writes.values())]
        for base in (*used, *low.rendered.scratch):
            first[base] = min(first.get(base, begin), begin)
            last[base] = max(last.get(base, end), end)
    finish = max((end for _, end in times), default=-1) + 1
    for value in graph.outputs:
        base = scheduled.views[value].base
        first.setdefault(base, finish)
        last[base] = finish
    return {
        v: Lifetime(v.type.nbytes, first[v], last[v])
        for v in first
        if v not in inputs and v.type.nbytes
    }


def _times(lowered: Sequence[Lowered]) -> list[tuple[int, int]]:
    """The first and last enqueue of each step; steps without one follow the step before."""
    found, now = [], 0
    alone = not any(low.places for low in lowered)
    for i, low in enumerate(lowered):
        stages = [place.stage for place in low.places] or [i if alone else now]
        found.append((min(stages), max(stages)))
        now = max(stages)
    return found


def _heirs(
    scheduled: Schedule, lowered: Sequence[Lowered], lives: Mapping[Value, Lifetime]
) -> list[tuple[Value, Value]]:
    """Pairs (old, new) where a step may write new over old, element by element."""
    pairs = []
    times = _times(lowered)
    company: dict[int, set[int]] = {}  # which steps share each enqueue
    users: dict[Value, list[int]] = {}
    for i, (begin, end) in enumerate(times):
        for stage in range(begin, end + 1):
            company.setdefault(stage, set()).add(i)
        step = scheduled.steps[i]
        for base in {view.base for view in (*step.reads.values(), *step.writes.values())}:
            users.setdefault(base, []).append(i)
    for i, step in enumerate(scheduled.steps):
        others = {k for stage in range(times[i][0], times[i][1] + 1) for k in company[stage]} - {i}
        for new in step.writes.values():
            if new.base not in lives or not new.complete:
                continue
            for value, read in step.reads.items():
                old = lives.get(read.base)
                ends = old is not None and old.last == lives[new.base].first
                same = read.shape == new.shape and read.strides == new.strides
                if not (ends and same and read.complete and _replaces(step, value, new)):
                    continue
                if others.isdisjoint(users[read.base]):  # beside or before this step
                    pairs.append((read.base, new.base))
    return pairs


def _replaces(step: Step, value: Value, new: View) -> bool:
    """Whether ``new`` can be written over the place of the read ``value``."""
    read = step.reads[value]
    if read.offset or read.base.type.nbytes != new.base.type.nbytes:
        return False
    if any(v is not value and r.base is read.base for v, r in step.reads.items()):
        return False
    moved = {t: replace(w, base=read.base) if w is new else w for t, w in step.writes.items()}
    target = next(w for t, w in moved.items() if step.writes[t] is new)
    return in_place(Step(step.nodes, step.reads, moved), value, [target])
