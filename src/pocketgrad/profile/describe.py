"""What a plan says of its launches before any ran: operations, class, arithmetic, bytes, memory.

Pure. Nothing here knows how long anything took; a step of several launches is divided in `join`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pocketgrad.backends.api import Lowered
from pocketgrad.ir.core import Node, Value
from pocketgrad.ops.arithmetic import Cast
from pocketgrad.ops.move import Concat, Movement
from pocketgrad.plan.plan import Plan, Step
from pocketgrad.plan.summary import KINDS, kept_for_backward, moved_nbytes
from pocketgrad.plan.views import VIEW_OPS, View
from pocketgrad.trace.profile import LaunchRow, MemoryCurve, OpShare, Work

_MOVES = (Movement, Concat)
_NAME_SHOWN = 60


def launch_rows(
    plan: Plan, lowered: Sequence[Lowered], owners: Sequence[tuple[int, ...]], queue: str
) -> tuple[LaunchRow, ...]:
    """A row per launch. A step of several launches gives each an equal part of its costs."""
    parts = [0] * len(plan.steps)
    for owner in owners:
        for position in owner:
            parts[position] += 1
    return tuple(
        _row([(plan.steps[p], lowered[p].kernel, parts[p]) for p in owner], queue)
        for owner in owners
    )


def upload_row(name: str, nbytes: int, queue: str) -> LaunchRow:
    """The row of an upload that is part of every step."""
    share = OpShare("upload", name, "input", 1.0, 0)
    return LaunchRow(
        f"upload {name}", "upload", (share,), name, "input", Work.COPY, 0, nbytes, queue
    )


def _row(parts: Sequence[tuple[Step, str, int]], queue: str) -> LaunchRow:
    weights: dict[tuple[str, str, str], list[float]] = {}
    for step, _, launches in parts:
        for node in working(step):
            key = (node.op.label(), node.scope, node.phase)
            found = weights.setdefault(key, [0.0, 0.0])
            flops = node.cost.flops if node.inputs else 0
            found[0] += max(flops, sum(v.type.size for v in node.outputs)) / launches
            found[1] += flops / launches
    total = sum(weight for weight, _ in weights.values())
    ops = tuple(
        OpShare(*key, weight / total if total else 1 / len(weights), round(flops))
        for key, (weight, flops) in weights.items()
    )
    largest = max(ops, key=lambda op: op.share)
    name = "+".join(dict.fromkeys(op.op for op in ops))
    return LaunchRow(
        name if len(name) <= _NAME_SHOWN else f"{name[: _NAME_SHOWN - 1]}…",
        "+".join(dict.fromkeys(kernel for _, kernel, _ in parts)),
        ops,
        largest.scope,
        largest.phase,
        _work([work_of(step) for step, _, _ in parts]),
        sum(op.flops for op in ops),
        round(sum(step_nbytes(step) / launches for step, _, launches in parts)),
        queue,
    )


def _work(kinds: Sequence[Work]) -> Work:
    """Of several steps in one launch: compute if any computes, a plain copy only if all are."""
    if Work.COMPUTE in kinds:
        return Work.COMPUTE
    return Work.LAYOUT if Work.LAYOUT in kinds else Work.COPY


def working(step: Step) -> Sequence[Node]:
    """The nodes that cost something; of a step that only moves, all."""
    return [n for n in step.nodes if not isinstance(n.op, VIEW_OPS) and n.inputs] or step.nodes


def step_nbytes(step: Step) -> int:
    """Bytes that a step reads and writes."""
    return sum(moved_nbytes(v, view) for v, view in (*step.reads.items(), *step.writes.items()))


def work_of(step: Step) -> Work:
    """Whether a step computes, copies, or copies so that the data lies otherwise."""
    nodes = working(step)
    if not all(_only_moves(node) for node in nodes) or not step.reads:
        return Work.COMPUTE
    orders = {_order(view) for view in (*step.reads.values(), *step.writes.values())}
    return Work.COPY if len(orders) == 1 else Work.LAYOUT


def _only_moves(node: Node) -> bool:
    if isinstance(node.op, Cast):
        return node.inputs[0].dtype == node.outputs[0].dtype
    return isinstance(node.op, _MOVES)


def _order(view: View) -> tuple[int, ...]:
    """The axes by how far apart neighbours along them lie; axes of one element say nothing."""
    strides = [s for n, s in zip(view.shape, view.strides, strict=True) if n > 1]
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))


@dataclass(frozen=True)
class _Life:
    """A value in the arena: what it is, and the steps between which it is needed."""

    kind: str
    nbytes: int
    first: int
    last: int


def memory_curve(
    plan: Plan,
    lowered: Sequence[Lowered],
    owners: Sequence[tuple[int, ...]],
    kind_of_buffer: Callable[[str], str],
    allocated_nbytes: int,
) -> MemoryCurve:
    """Bytes needed while each launch runs, by kind: what lies in a place that is free counts not.

    Buffers other than the arena are needed always.
    """
    by_step = np.zeros((len(plan.steps), len(KINDS)), np.int64)
    for name, nbytes in plan.buffers.items():
        if name != "arena":
            by_step[:, KINDS.index(kind_of_buffer(name))] += nbytes
    for life in _lives(plan, lowered):
        by_step[life.first : life.last + 1, KINDS.index(life.kind)] += life.nbytes
    rows = [by_step[list(owner)].max(axis=0) for owner in owners]
    curve = np.array(rows, np.int64).reshape(len(owners), len(KINDS))
    return MemoryCurve(KINDS, curve, allocated_nbytes)


def _lives(plan: Plan, lowered: Sequence[Lowered]) -> list[_Life]:
    gradients = {plan.views[v].base for v in plan.graph.outputs if v.name.startswith("gradient.")}
    kept = kept_for_backward(plan)
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for i, (step, low) in enumerate(zip(plan.steps, lowered, strict=True)):
        used = [view.base for view in (*step.reads.values(), *step.writes.values())]
        for base in (*used, *low.rendered.scratch):
            first.setdefault(base, i)
            last[base] = i
    for value in plan.graph.outputs:
        last[plan.views[value].base] = len(plan.steps) - 1
    in_arena = [v for v in first if v in plan.slots and plan.slots[v].buffer == "arena"]
    return [
        _Life(
            "gradients" if v in gradients else "activations" if v in kept else "workspace",
            plan.slots[v].nbytes,
            first[v],
            last[v],
        )
        for v in _one_per_place(plan, in_arena, first, last)
    ]


def _one_per_place(
    plan: Plan, values: Sequence[Value], first: dict[Value, int], last: dict[Value, int]
) -> list[Value]:
    """A value written over the one it replaces shares a step with it: its place counts once."""
    by_place: dict[tuple[int, int], list[Value]] = {}
    for v in values:
        slot = plan.slots[v]
        by_place.setdefault((slot.offset, slot.nbytes), []).append(v)
    for heirs in by_place.values():
        heirs.sort(key=lambda v: first[v])
        for old, new in pairwise(heirs):
            last[old] = min(last[old], max(first[old], first[new] - 1))
    return list(values)
