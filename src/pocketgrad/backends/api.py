"""The contract of a backend: memory by bytes, steps lowered, bound once, run often.

The engine lowers all steps first (kernels tell their scratch memory), plans memory, allocates the
plan's buffers, binds, and from then on only writes feeds, runs, and reads fetches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pocketgrad.base.dtypes import Array
from pocketgrad.ir.core import Value
from pocketgrad.kernels.spec import DeviceInfo, Rendered
from pocketgrad.plan.plan import Slot, Step


@dataclass(frozen=True, eq=False)
class Lowered:
    """A step as a backend will run it. ``kernel`` names the family; ``rendered`` may be empty."""

    step: Step
    kernel: str
    rendered: Rendered


class Bound(Protocol):
    """All steps with their memory, ready to run."""

    launches: int

    def run(self) -> None:
        """Enqueue every launch in order; returns before they end. Allocates nothing."""

    def run_step(self, position: int) -> None:
        """Enqueue the launches of one step: for looking at what each does."""


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
    ) -> Bound:
        """Build everything and fix all addresses."""

    def finish(self) -> None:
        """Wait until all that was enqueued has ended."""
