"""The contract of a backend: memory by bytes, steps lowered, bound once, run often.

The engine lowers all steps first (kernels tell their scratch memory), plans memory, allocates the
plan's buffers, binds, and from then on only writes feeds, runs, and reads fetches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from pocketgrad.base.dtypes import Array
from pocketgrad.ir.core import Value
from pocketgrad.kernels.spec import DeviceInfo, Launch, Place, Rendered
from pocketgrad.plan.plan import Slot, Step
from pocketgrad.trace.clock import Tie


@dataclass(frozen=True, eq=False)
class Lowered:
    """A step as a backend will run it. ``kernel`` names the family; ``rendered`` may be empty.

    ``places``: when each launch runs; empty where each is an enqueue of its own, in order.
    """

    step: Step
    kernel: str
    rendered: Rendered
    places: tuple[Place, ...] = ()


def stages(lowered: Sequence[Lowered]) -> list[list[tuple[Launch, Place]]]:
    """The enqueues of a plan, each with its launches; those that compute nothing are left out."""
    return [[(launch, place) for _, launch, place in members] for members in _placed(lowered)]


def owners_of(lowered: Sequence[Lowered]) -> list[tuple[int, ...]]:
    """The steps that each enqueue computes."""
    return [tuple(dict.fromkeys(step for step, *_ in members)) for members in _placed(lowered)]


def _placed(lowered: Sequence[Lowered]) -> list[list[tuple[int, Launch, Place]]]:
    found: dict[int, list[tuple[int, Launch, Place]]] = {}
    for i, low in enumerate(lowered):
        last = max(found, default=-1)
        alone = tuple(Place(last + 1 + k) for k in range(len(low.rendered.launches)))
        for launch, place in zip(low.rendered.launches, low.places or alone, strict=True):
            if 0 not in launch.global_size:
                found.setdefault(place.stage, []).append((i, launch, place))
    return [found[stage] for stage in sorted(found)]


class Bound(Protocol):
    """All steps with their memory, ready to run."""

    launches: int

    @property
    def owners(self) -> Sequence[tuple[int, ...]]:
        """For each launch the steps of the plan that it computes, wholly or in part."""

    def run(self, first: int = 0, count: int = 1) -> None:
        """Enqueue every launch in order; returns before they end. Allocates nothing.

        So often one after another as ``count`` says, from batch ``first`` of repeated inputs on.
        """

    def run_step(self, position: int) -> None:
        """Enqueue the launches of one step: for looking at what each does."""


class Ran(NamedTuple):
    """A command that has ended, with its times in nanoseconds on the clock of its device."""

    kind: Literal["launch", "upload"]
    number: int  # of the launch in its program; the bytes of an upload
    queue: str
    queued_ns: int
    submitted_ns: int
    start_ns: int
    end_ns: int


class Profiling(Protocol):
    """When commands ran, from its making until ``close``. Commands are kept while ``on``."""

    source: str  # how times are known: 'device events' or 'host clock'
    on: bool

    def ties(self) -> Mapping[str, Tie]:
        """A moment on the clock of each queue and on ours; waits for what was enqueued."""

    def take(self) -> list[Ran]:
        """What was kept since the last time, in the order of enqueueing; waits for its end."""

    def close(self) -> None:
        """Go back to running without records."""


class Backend(Protocol):
    """A way to hold memory and compute steps."""

    name: str
    info: DeviceInfo

    def alloc(self, nbytes: int) -> Any:
        """A buffer. Contents are arbitrary."""

    def fill(self, buffer: Any, byte: int) -> None:
        """Set every byte (poison in tests, zeros for state)."""

    def write(self, buffer: Any, offset: int, data: Array) -> None:
        """Copy a dense array to a byte offset. The array may be changed after the call."""

    def read(self, buffer: Any, offset: int, out: Array) -> None:
        """Copy from a byte offset into a dense array, after all that was enqueued before."""

    def lower(self, step: Step, strict: bool = False) -> Lowered:
        """Choose how to compute a step; ``strict``: only by the sums that its ops mean."""

    def bind(
        self,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, Any],
        slots: Mapping[Value, Slot],
        repeated: Collection[str] = (),
    ) -> Bound:
        """Build everything and fix all addresses. ``repeated`` buffers hold batch after batch."""

    def finish(self) -> None:
        """Wait until all that was enqueued has ended."""

    def profiling(self) -> Profiling:
        """Begin to keep when commands run. DeviceError, saying why, where that cannot be told."""
