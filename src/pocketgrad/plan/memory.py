"""Lifetimes to offsets: temporaries share one arena, largest first, lowest free place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pocketgrad.ir.core import Value


@dataclass(frozen=True)
class Lifetime:
    """Alive from the step that first writes it to the last that reads it, both included."""

    nbytes: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both are alive during some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Placement:
    """Byte offset of each value, and the size of the arena that holds them all."""

    offsets: Mapping[Value, int]
    nbytes: int


def place(
    lifetimes: Mapping[Value, Lifetime],
    heirs: Sequence[tuple[Value, Value]] = (),
    align: int = 64,
) -> Placement:
    """Offsets such that values alive together do not overlap.

    ``heirs``: pairs (old, new) where new may take old's place although both are alive during one
    step, because that step works in place.
    """
    estate = _inherited(lifetimes, heirs)
    merged: dict[Value, Lifetime] = {}
    for value, life in lifetimes.items():
        owner = estate[value]
        known = merged.get(owner, life)
        merged[owner] = Lifetime(
            max(known.nbytes, life.nbytes),
            min(known.first, life.first),
            max(known.last, life.last),
        )
    offsets: dict[Value, int] = {}
    order = sorted(merged, key=lambda v: (-merged[v].nbytes, merged[v].first, v.name))
    for value in order:
        offsets[value] = _lowest(merged[value], [(offsets[o], merged[o]) for o in offsets], align)
    top = max((offsets[v] + merged[v].nbytes for v in offsets), default=0)
    return Placement({v: offsets[estate[v]] for v in lifetimes}, -(-top // align) * align)


def _lowest(life: Lifetime, placed: list[tuple[int, Lifetime]], align: int) -> int:
    taken = sorted((at, at + other.nbytes) for at, other in placed if other.meets(life))
    offset = 0
    for start, end in taken:
        if offset + life.nbytes <= start:
            break
        offset = max(offset, -(-end // align) * align)
    return offset


def _inherited(
    lifetimes: Mapping[Value, Lifetime], heirs: Sequence[tuple[Value, Value]]
) -> dict[Value, Value]:
    """Who owns the place of each value, following chains of in-place steps."""
    owner = {v: v for v in lifetimes}
    given: set[Value] = set()
    for old, new in heirs:
        a, b = lifetimes.get(old), lifetimes.get(new)
        if a is None or b is None or old in given or owner[new] is not new:
            continue
        if a.last == b.first and b.nbytes <= a.nbytes:
            owner[new] = owner[old]
            given.add(old)
    return owner
