"""The geometry of a loop nest: which dimensions are outer and inner, merged, with all strides.

Neighbouring dimensions that every access walks as one are merged, so that a dense elementwise step
is a single long loop whatever its shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from pocketgrad.ir.core import Node, Value
from pocketgrad.ops.source import Iota, Uniform
from pocketgrad.plan.domain import Domain
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, row_major


@dataclass(frozen=True)
class Dim:
    """One loop: a size, and the domain dimensions merged into it."""

    size: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class Nest:
    """Loops of a step. ``strides[v]`` has one stride per loop (outer, then inner) for every access;
    ``counters`` the same for sources that depend on the position.

    ``lane`` is the loop whose neighbours share a vector register; None for a single position.
    ``vector_outer`` tells that it is an outer loop (rows side by side), not the innermost.
    """

    outer: tuple[Dim, ...]
    inner: tuple[Dim, ...]
    strides: Mapping[Value, tuple[int, ...]]
    counters: Mapping[Value, tuple[int, ...]]
    lane: int | None
    vector_outer: bool

    @property
    def loops(self) -> tuple[Dim, ...]:
        """All loops, outer first."""
        return self.outer + self.inner

    @property
    def rows(self) -> int:
        """Positions of the outer loops."""
        return prod(d.size for d in self.outer)

    @property
    def row_size(self) -> int:
        """Positions of the inner loops."""
        return prod(d.size for d in self.inner)

    def varies(self, domain: Domain, value: Value, loop: int) -> bool:
        """Whether a value changes along a loop."""
        return bool(domain.dims(value) & set(self.loops[loop].members))


def nest_of(step: Step, domain: Domain) -> Nest:
    """Choose and merge the loops of a step."""
    raw = strides_by_dim({**step.reads, **step.writes}, domain)
    counters = counters_of(step, domain)
    walks = [*raw.values(), *counters.values()]
    inner = sorted(domain.row)
    outer = sorted(domain.outer)
    merged_outer = _merge(outer, domain, walks)
    merged_inner = _merge(inner, domain, walks)
    if not inner and merged_outer:
        last = max(merged_outer, key=lambda d: (_unit_accesses(d, step, raw), d.members))
        merged_outer.remove(last)
        merged_inner = [last]
    vector_outer = False
    lane = len(merged_outer) + len(merged_inner) - 1 if merged_inner else None
    if domain.row and merged_outer:
        by_row = _unit_accesses(merged_inner[-1], step, raw)
        by_rows = _unit_accesses(merged_outer[-1], step, raw)
        vector_outer = by_rows > by_row and merged_outer[-1].size > 1
        lane = len(merged_outer) - 1 if vector_outer else lane
    loops = [*merged_outer, *merged_inner]
    strides, counts = (
        {v: tuple(s[d.members[-1]] for d in loops) for v, s in table.items()}
        for table in (raw, counters)
    )
    return Nest(tuple(merged_outer), tuple(merged_inner), strides, counts, lane, vector_outer)


def strides_by_dim(
    accesses: Mapping[Value, View | tuple[int, ...]], domain: Domain
) -> dict[Value, list[int]]:
    """Strides by axis as strides by domain dimension."""
    found: dict[Value, list[int]] = {}
    for value, access in accesses.items():
        row = [0] * len(domain.sizes)
        strides = access.strides if isinstance(access, View) else access
        for dim, stride in zip(domain.axes[value], strides, strict=True):
            if dim is not None:
                row[dim] = stride
        found[value] = row
    return found


def counters_of(step: Step, domain: Domain) -> dict[Value, list[int]]:
    """Strides of the sources that depend on the position, as if they were accesses by it."""
    return strides_by_dim({v: c for n in step.nodes for v, c in _counter(n).items()}, domain)


def _counter(node: Node) -> dict[Value, tuple[int, ...]]:
    """Sources that depend on the position count as an access by it."""
    (out, *_) = node.outputs
    if isinstance(node.op, Uniform):
        return {out: row_major(out.shape)}
    if isinstance(node.op, Iota):
        return {out: tuple(int(i == node.op.axis) for i in range(len(out.shape)))}
    return {}


def _merge(dims: list[int], domain: Domain, walks: list[list[int]]) -> list[Dim]:
    merged: list[Dim] = []
    for d in dims:
        size = domain.sizes[d]
        if merged and all(s[merged[-1].members[-1]] == s[d] * size for s in walks):
            previous = merged.pop()
            merged.append(Dim(previous.size * size, (*previous.members, d)))
        else:
            merged.append(Dim(size, (d,)))
    return merged


def _unit_accesses(dim: Dim, step: Step, raw: Mapping[Value, list[int]]) -> int:
    """Elements read and written with unit stride along a loop; writes count double."""
    d = dim.members[-1]
    reads = sum(v.type.size for v in step.reads if raw[v][d] == 1)
    return reads + 2 * sum(v.type.size for v in step.writes if raw[v][d] == 1)
