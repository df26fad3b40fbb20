"""The plan of a step: what is launched, in which order, and where every value lies.

A plan holds no device object; it can be printed, costed and checked without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pocketgrad.ir.core import Graph, Node, Value
from pocketgrad.plan.views import View


@dataclass(frozen=True, eq=False)
class Step:
    """Nodes that one kernel computes together.

    ``reads``: values computed elsewhere, and how they lie; ``writes``: values that must be stored.
    """

    nodes: tuple[Node, ...]
    reads: Mapping[Value, View]
    writes: Mapping[Value, View]

    @property
    def name(self) -> str:
        """The labels of the ops, without constants: 'mat_mul+add+relu'."""
        labels = [n.op.label() for n in self.nodes if n.inputs] or [
            n.op.label() for n in self.nodes
        ]
        return "+".join(labels)


@dataclass(frozen=True)
class Slot:
    """A place: a named buffer and a byte range in it."""

    buffer: str
    offset: int
    nbytes: int


@dataclass(frozen=True, eq=False)
class Plan:
    """A graph scheduled and placed. ``slots`` has every base value that needs memory.

    ``buffers`` gives the byte size of each buffer; the arena holds all temporaries.
    """

    graph: Graph
    steps: tuple[Step, ...]
    slots: Mapping[Value, Slot]
    buffers: Mapping[str, int]
    views: Mapping[Value, View]

    @property
    def arena_nbytes(self) -> int:
        """Bytes of the arena of temporaries."""
        return self.buffers.get("arena", 0)

    @property
    def peak_nbytes(self) -> int:
        """All device memory the step ever uses."""
        return sum(self.buffers.values())
