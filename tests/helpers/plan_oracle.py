"""Judges a plan by walking it byte by byte; knows nothing of how the planner decides.

Content is judged elsewhere, by running. Here: every read finds bytes that were written for the
value it means, nothing alive is overwritten, nothing leaves its place, in-place work is safe in any
order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pocketgrad.backends.api import Lowered, stages
from pocketgrad.base.dtypes import Array
from pocketgrad.ir.core import Value
from pocketgrad.kernels.spec import Place
from pocketgrad.plan.domain import analyse, loopable, reduced
from pocketgrad.plan.memory import Lifetime, Placement
from pocketgrad.plan.plan import Plan, Slot, Step
from pocketgrad.plan.views import View, whole

NOBODY = 0


def audit_placement(
    lives: Mapping[Value, Lifetime],
    heirs: Sequence[tuple[Value, Value]],
    placed: Placement,
    align: int,
) -> None:
    """Values alive together lie apart, but for an heir and who it inherits from."""
    related = set(heirs) | {(b, a) for a, b in heirs}
    values = list(lives)
    for i, v in enumerate(values):
        at = placed.offsets[v]
        assert at % align == 0, f"{v} starts at {at}, not at a multiple of {align}"
        assert 0 <= at <= placed.nbytes - lives[v].nbytes, f"{v} leaves the arena"
        for w in values[i + 1 :]:
            one_step = min(lives[v].last, lives[w].last) == max(lives[v].first, lives[w].first)
            if not lives[v].meets(lives[w]) or ((v, w) in related and one_step):
                continue
            start = placed.offsets[w]
            apart = at + lives[v].nbytes <= start or start + lives[w].nbytes <= at
            assert apart, f"{v} and {w} are alive together and overlap"


def audit(plan: Plan, lowered: Sequence[Lowered]) -> None:
    """Raise AssertionError at the first step that breaks a rule."""
    owners = {name: np.zeros(nbytes, np.int64) for name, nbytes in plan.buffers.items()}
    number = {v: i + 1 for i, v in enumerate(plan.slots)}
    for value in plan.graph.inputs:
        owners[value.name][:] = number[value]
    audit_stages(plan, lowered)
    stored: set[Value] = set()
    for step, low in zip(plan.steps, lowered, strict=True):
        for value, view in step.reads.items():
            mine = owners[plan.slots[view.base].buffer][bytes_of(plan.slots, view)]
            assert (mine == number[view.base]).all(), f"{step.name} reads {value} before its time"
        for scratch in low.rendered.scratch:
            slot = plan.slots[scratch]
            owners[slot.buffer][slot.offset : slot.offset + slot.nbytes] = NOBODY
        _audit_overlaps(plan, step, low)
        for value, view in step.writes.items():
            assert value not in stored, f"{step.name} stores {value} a second time"
            stored.add(value)
            owners[plan.slots[view.base].buffer][bytes_of(plan.slots, view)] = number[view.base]
    for value in plan.graph.outputs:
        view = plan.views[value]
        assert view.dense, f"output {value} is scattered"
        if value.type.nbytes:
            mine = owners[plan.slots[view.base].buffer][bytes_of(plan.slots, view)]
            assert (mine == number[view.base]).all(), f"output {value} did not last"


def audit_stages(plan: Plan, lowered: Sequence[Lowered]) -> None:
    """Launches of one enqueue write nothing that another one beside them touches."""
    for members in stages(lowered):
        touched: list[tuple[Place, int, dict[str, Array], dict[str, Array]]] = []
        for launch, place in members:
            index, low = next(
                (i, low) for i, low in enumerate(lowered) if launch in low.rendered.launches
            )
            reads = _by_buffer(plan, launch.args)
            own = [w for w in low.step.writes.values() if w.base in {v.base for v in launch.args}]
            writes = _by_buffer(plan, [*own, *(whole(v) for v in low.rendered.scratch)])
            for other, before, their_reads, their_writes in touched:
                if other.track == place.track:
                    assert place.serial, "launches of a track that is not serial"
                    assert other.serial
                    assert before <= index, "a serial track is out of order"
                    continue
                for mine, theirs in (
                    (writes, their_reads),
                    (writes, their_writes),
                    (reads, their_writes),
                ):
                    for buffer in mine.keys() & theirs.keys():
                        clash = np.intersect1d(mine[buffer], theirs[buffer])
                        assert not clash.size, f"{low.step.name} beside {lowered[before].step.name}"
            touched.append((place, index, reads, writes))
    positions = [low.places[0].stage for low in lowered if low.places]
    assert positions == sorted(positions), "steps are not in the order of their enqueues"


def _by_buffer(plan: Plan, views: Iterable[View]) -> dict[str, Array]:
    found: dict[str, list[Array]] = {}
    for view in views:
        found.setdefault(plan.slots[view.base].buffer, []).append(bytes_of(plan.slots, view))
    return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}


def _audit_overlaps(plan: Plan, step: Step, low: Lowered) -> None:
    reads = {v: _places(plan, w) for v, w in step.reads.items()}
    writes = {v: _places(plan, w) for v, w in step.writes.items()}
    scratch = {
        v: (plan.slots[v].buffer, np.arange(plan.slots[v].nbytes) + plan.slots[v].offset)
        for v in low.rendered.scratch
    }
    written = list({**writes, **scratch}.items())
    for i, (v, (buffer, at)) in enumerate(written):
        assert np.unique(at).size == at.size, f"{step.name} writes elements of {v} twice"
        for w, (other, there) in written[i + 1 :]:
            clash = buffer == other and np.intersect1d(at, there).size
            assert not clash, f"{step.name} writes {v} and {w} to the same place"
        for r, (other, there) in reads.items():
            if buffer == other and np.intersect1d(at, there).size:
                assert v in writes, f"{step.name} has its scratch memory over {r}"
                _audit_in_place(step, r, v, np.intersect1d(at, there).size == at.size)


def _audit_in_place(step: Step, read: Value, write: Value, whole: bool) -> None:
    """Each position of the loop nest overwrites only what it alone reads."""
    where = f"{step.name} writes {write} over {read}"
    assert all(loopable(n) for n in step.nodes), f"{where}, and is no loop nest"
    domain = analyse(step.nodes)
    assert domain is not None
    axes = domain.axes[read] == domain.axes[write]
    strides = step.reads[read].strides == step.writes[write].strides
    assert all((whole, axes, strides)), f"{where} elsewhere than it reads"
    sibling = [v for v, w in step.reads.items() if v is not read and w == step.reads[read]]
    assert all(domain.axes[v] == domain.axes[write] for v in sibling), f"{where}, read twice"
    row = domain.dims(write) & domain.row
    passes = [domain.levels[v] for v in step.writes if domain.dims(v) & domain.row]
    passes += [domain.levels[n.inputs[0]] for n in step.nodes if reduced(n, domain.axes)]
    assert not row or domain.levels[write] == max(passes), f"{where} before a later pass over it"


def _places(plan: Plan, view: View) -> tuple[str, Array]:
    return plan.slots[view.base].buffer, bytes_of(plan.slots, view)


def bytes_of(slots: Mapping[Value, Slot], view: View) -> Array:
    """The byte positions of a view within its buffer."""
    slot, size = slots[view.base], view.base.dtype.nbytes
    elements = np.array([view.offset])
    for n, stride in zip(view.shape, view.strides, strict=True):
        elements = (elements[:, None] + np.arange(n) * stride).reshape(-1)
    if elements.size:
        inside = elements.min() >= 0 and elements.max() < view.base.type.size
        assert inside, f"{view} leaves {view.base}"
    at = (elements[:, None] * size + np.arange(size)).reshape(-1)
    return slot.offset + at
