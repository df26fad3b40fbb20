"""Lifetimes to offsets: temporaries share one arena, largest first, lowest free place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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
    order = sorted(merged, key=lambda v: (-merged[v].nbytes, merged[v].first, v.name))
    offsets = dict(zip(order, _placed([merged[v] for v in order], align), strict=True))
    top = max((offsets[v] + merged[v].nbytes for v in offsets), default=0)
    return Placement({v: offsets[estate[v]] for v in lifetimes}, -(-top // align) * align)


def _placed(lives: Sequence[Lifetime], align: int) -> Iterator[int]:
    """The lowest free place of each in turn. All earlier ones are compared with it at once."""
    first = np.array([life.first for life in lives], np.int64)
    last = np.array([life.last for life in lives], np.int64)
    start, end = np.zeros_like(first), np.zeros_like(first)
    for i, life in enumerate(lives):
        (meets,) = np.nonzero((first[:i] <= life.last) & (life.first <= last[:i]))
        taken = meets[np.argsort(start[meets])]
        offset = 0
        for low, high in zip(start[taken].tolist(), end[taken].tolist(), strict=True):
            if offset + life.nbytes <= low:
                break
            offset = max(offset, -(-high // align) * align)
        start[i], end[i] = offset, offset + life.nbytes
        yield offset


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
