"""A backend around another that watches every byte: canaries around buffers, and after each step
only what that step writes may have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pocketgrad.backends.api import Backend, Bound, Lowered, Profiling
from pocketgrad.base.dtypes import Array
from pocketgrad.ir.core import Value
from pocketgrad.plan.plan import Slot, Step
from tests.helpers.plan_oracle import bytes_of

CANARY = 0x5A
FRONT = BEHIND = 256  # bytes; the front keeps the alignment a device promises for a buffer


@dataclass(frozen=True, eq=False)
class Guarded:
    """A buffer with canaries on both sides of its ``nbytes``."""

    inner: Any
    nbytes: int


class WatchingBackend:
    """Same contract, same results; AssertionError names the step that wrote where it must not."""

    def __init__(self, inner: Backend) -> None:
        self.inner, self.name, self.info = inner, f"watched {inner.name}", inner.info

    def alloc(self, nbytes: int) -> Guarded:
        buffer = self.inner.alloc(FRONT + nbytes + BEHIND)
        self.inner.fill(buffer, CANARY)
        return Guarded(buffer, nbytes)

    def fill(self, buffer: Guarded, byte: int) -> None:
        self.inner.write(buffer.inner, FRONT, np.full(buffer.nbytes, byte, np.uint8))

    def write(self, buffer: Guarded, offset: int, data: Array) -> None:
        self.inner.write(buffer.inner, FRONT + offset, data)

    def read(self, buffer: Guarded, offset: int, out: Array) -> None:
        self.inner.read(buffer.inner, FRONT + offset, out)

    def lower(self, step: Step, strict: bool = False) -> Lowered:
        return self.inner.lower(step, strict)

    def bind(
        self,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, Any],
        slots: Mapping[Value, Slot],
        repeated: Collection[str] = (),
    ) -> WatchedProgram:
        assert not repeated, "one batch at a time is watched"
        moved = {v: replace(slot, offset=slot.offset + FRONT) for v, slot in slots.items()}
        bound = self.inner.bind(lowered, {n: b.inner for n, b in buffers.items()}, moved)
        return WatchedProgram(self, bound, lowered, buffers, moved)

    def finish(self) -> None:
        self.inner.finish()

    def profiling(self) -> Profiling:
        return self.inner.profiling()

    def contents(self, buffer: Guarded) -> Array:
        """All bytes, canaries included."""
        out = np.empty(FRONT + buffer.nbytes + BEHIND, np.uint8)
        self.inner.read(buffer.inner, 0, out)
        return out


class WatchedProgram:
    """Runs step by step and looks at all memory in between."""

    def __init__(
        self,
        backend: WatchingBackend,
        bound: Bound,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, Guarded],
        slots: Mapping[Value, Slot],
    ) -> None:
        self.backend, self.bound, self.lowered = backend, bound, lowered
        self.buffers, self.slots = buffers, slots
        self.launches, self.owners = bound.launches, bound.owners

    def run(self, first: int = 0, count: int = 1) -> None:
        before = self._contents()
        for position in range(len(self.lowered)):
            before = self._watch(position, before)

    def run_step(self, position: int) -> None:
        self._watch(position, self._contents())

    def _contents(self) -> dict[str, Array]:
        return {name: self.backend.contents(b) for name, b in self.buffers.items()}

    def _watch(self, position: int, before: Mapping[str, Array]) -> dict[str, Array]:
        """What memory holds after one step, of which nothing but its results has changed."""
        self.bound.run_step(position)
        after = self._contents()
        low = self.lowered[position]
        legal = self._legal(low)
        for name, found in after.items():
            changed = np.flatnonzero(found != before[name])
            outside = np.setdiff1d(changed, legal.get(name, changed[:0]))
            assert not outside.size, (
                f"{low.kernel} for {low.step.name} changed {outside.size} bytes of '{name}' beyond "
                f"its results, the first at {int(outside[0]) - FRONT} of {found.size - 2 * FRONT}"
            )
        return after

    def _legal(self, low: Lowered) -> dict[str, Array]:
        """The bytes a step may write, by buffer."""
        found: dict[str, list[Array]] = {}
        for view in low.step.writes.values():
            buffer = self.slots[view.base].buffer
            found.setdefault(buffer, []).append(bytes_of(self.slots, view))
        for value in low.rendered.scratch:
            slot = self.slots[value]
            at = np.arange(slot.offset, slot.offset + slot.nbytes)
            found.setdefault(slot.buffer, []).append(at)
        return {name: np.concatenate(parts) for name, parts in found.items()}
