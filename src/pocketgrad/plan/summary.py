"""What a plan costs, as data and as text: its launches, and its memory by what it is for.

Golden tests compare the text. Knows no device: the names of kernels are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from pocketgrad.base.units import si
from pocketgrad.ir.core import Node, Value
from pocketgrad.plan.plan import Plan, Step
from pocketgrad.plan.views import VIEW_OPS, View

KINDS = ("parameters", "gradients", "optimizer state", "input", "activations", "workspace")
_OPS_SHOWN = 44  # characters; a fused step can have thirty operations


@dataclass(frozen=True)
class LaunchRow:
    """One step of a plan. ``first``: the number of its first launch; ``count``: how many.

    Steps with the same number are computed by one launch, in this order or side by side.
    """

    first: int
    count: int
    kernel: str
    ops: str
    scope: str
    outputs: tuple[str, ...]
    flops: int
    nbytes: int


@dataclass(frozen=True)
class PlanSummary:
    """A plan as numbers; printed, it is a table. Bytes by kind add up to all that is allocated."""

    title: str
    launches: tuple[LaunchRow, ...]
    peak_by_kind: dict[str, int]

    @property
    def peak_nbytes(self) -> int:
        """All device memory of the step."""
        return sum(self.peak_by_kind.values())

    @property
    def launch_count(self) -> int:
        """Launches in one step."""
        return max((row.first + row.count - 1 for row in self.launches), default=0)

    @property
    def flops(self) -> int:
        """Arithmetic operations in one step."""
        return sum(row.flops for row in self.launches)

    @property
    def nbytes(self) -> int:
        """Bytes that the launches read and write in one step."""
        return sum(row.nbytes for row in self.launches)

    def __str__(self) -> str:
        head = ("#", "kernel", "operations", "layer", "writes", "flops", "bytes")
        before = (None, *self.launches)
        rows = [
            head,
            *(_cells(row, above) for row, above in zip(self.launches, before, strict=False)),
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        right = (0, 5, 6)
        lines = [
            "  ".join(
                cell.rjust(width) if i in right else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        lines.insert(1, "─" * max(len(line) for line in lines))
        total = (
            f"{self.launch_count} launches, {si(self.flops, 'flop')}, "
            f"{si(self.nbytes, 'B')} read and written per step"
        )
        kinds = ", ".join(f"{kind} {si(n, 'B')}" for kind, n in self.peak_by_kind.items())
        peak = f"peak memory {si(self.peak_nbytes, 'B')} ({self.peak_nbytes:,} bytes): {kinds}"
        return "\n".join([self.title, "", *lines, "", total, peak])


def summarise(
    plan: Plan,
    kernels: Sequence[tuple[str, int, int]],
    title: str,
    kind_of_buffer: Callable[[str], str],
) -> PlanSummary:
    """The summary of a plan; ``kernels`` has for every step the family, the
    number of its first launch, and how many it takes part in.

    ``kind_of_buffer`` tells what a buffer other than the arena is for.
    """
    rows = [_row(step, *kernel) for step, kernel in zip(plan.steps, kernels, strict=True)]
    peak = dict.fromkeys(KINDS, 0)
    for name, nbytes in plan.buffers.items():
        if name != "arena":
            peak[kind_of_buffer(name)] += nbytes
    for kind, nbytes in arena_by_kind(plan).items():
        peak[kind] += nbytes
    return PlanSummary(title, tuple(rows), peak)


def arena_by_kind(plan: Plan) -> dict[str, int]:
    """Each byte of the arena counted once, as what it is first of: gradient, activation, the rest.

    Activations are what the forward part leaves for the backward part; the remainder (workspace)
    lives only from one launch to the next, or fills gaps.
    """
    gradients = {plan.views[v].base for v in plan.graph.outputs if v.name.startswith("gradient.")}
    kept = kept_for_backward(plan)
    taken: list[tuple[int, int]] = []
    found = {}
    for kind, bases in (("gradients", gradients), ("activations", kept - gradients)):
        slots = [plan.slots[v] for v in bases if v in plan.slots]
        spans = [(s.offset, s.offset + s.nbytes) for s in slots if s.buffer == "arena"]
        before = _covered(taken)
        taken += spans
        found[kind] = _covered(taken) - before
    found["workspace"] = plan.arena_nbytes - _covered(taken)
    return found


def kept_for_backward(plan: Plan) -> set[Value]:
    """What the forward part leaves for the backward part."""
    made: set[Value] = set()
    kept: set[Value] = set()
    for step in plan.steps:  # fusion can put both parts into one step
        phases = {n.phase for n in step.nodes}
        if phases != {"forward"}:
            kept |= {view.base for view in step.reads.values()} & made
        if "forward" in phases:
            made |= {view.base for view in step.writes.values()}
    return kept


def _covered(spans: Sequence[tuple[int, int]]) -> int:
    """The length of the union of byte ranges."""
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _row(step: Step, kernel: str, first: int, launches: int) -> LaunchRow:
    nodes = [n for n in step.nodes if not isinstance(n.op, VIEW_OPS) and n.inputs] or step.nodes
    return LaunchRow(
        first,
        launches,
        kernel,
        "+".join(n.op.label() for n in nodes),
        _scope(nodes),
        tuple(str(v.type) for v in step.writes),
        sum(n.cost.flops for n in nodes if n.inputs),
        sum(moved_nbytes(v, view) for v, view in (*step.reads.items(), *step.writes.items())),
    )


def _scope(nodes: Sequence[Node]) -> str:
    """The layers the nodes belong to, in order, with what is not the forward part marked."""
    names = dict.fromkeys(
        " ".join(part for part in (n.scope, n.phase if n.phase != "forward" else "") if part)
        for n in nodes
    )
    found = [name for name in names if name]
    if len(found) > 2:
        return f"{found[0]} … {found[-1]}"
    return ", ".join(found)


def moved_nbytes(value: Value, view: View) -> int:
    """Bytes of the elements of a view, repeated ones counted once."""
    pairs = zip(view.shape, view.strides, strict=True)
    return prod(n for n, stride in pairs if stride or not n) * value.dtype.nbytes


def _cells(row: LaunchRow, above: LaunchRow | None) -> tuple[str, ...]:
    number = str(row.first)
    if row.count != 1:
        number = f"{row.first}–{row.first + row.count - 1}" if row.count else "-"
    elif above is not None and above.count and above.first + above.count - 1 == row.first:
        number = "+"  # in the launch above
    ops = row.ops if len(row.ops) <= _OPS_SHOWN else f"{row.ops[: _OPS_SHOWN - 1]}…"
    more = f" +{len(row.outputs) - 2}" if len(row.outputs) > 2 else ""
    writes = " ".join(row.outputs[:2]) + more
    return number, row.kernel, ops, row.scope, writes, f"{row.flops:,}", f"{row.nbytes:,}"
