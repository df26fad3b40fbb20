"""The definition of every op: NumPy over the same plan, in the same arena as on a device."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pocketgrad.backends.api import Lowered, Ran
from pocketgrad.base.dtypes import Array
from pocketgrad.ir.core import Value
from pocketgrad.kernels.spec import DeviceInfo, Rendered
from pocketgrad.plan.plan import Slot, Step
from pocketgrad.plan.views import View
from pocketgrad.trace.clock import Tie, now_ns

INFO = DeviceInfo(
    name="NumPy",
    vendor="reference",
    kind="cpu",
    compute_units=1,
    max_work_group=1,
    local_mem_nbytes=0,
    base_align_nbytes=64,
    max_alloc_nbytes=1 << 62,
    vector_width=1,
)


class ReferenceBackend:
    """Runs each node's ``ref``. Slow, and right by definition."""

    name = "reference"
    info = INFO

    def __init__(self) -> None:
        self.timing: HostTiming | None = None

    def alloc(self, nbytes: int) -> Array:
        return np.zeros(max(nbytes, 1), np.uint8)

    def fill(self, buffer: Array, byte: int) -> None:
        buffer.fill(byte)

    def write(self, buffer: Array, offset: int, data: Array) -> None:
        buffer[offset : offset + data.nbytes] = (
            np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        )

    def read(self, buffer: Array, offset: int, out: Array) -> None:
        out.reshape(-1).view(np.uint8)[:] = buffer[offset : offset + out.nbytes]

    def lower(self, step: Step, strict: bool = False) -> Lowered:
        return Lowered(step, "reference", Rendered(()))

    def bind(
        self,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, Array],
        slots: Mapping[Value, Slot],
        repeated: Collection[str] = (),
    ) -> ReferenceProgram:
        return ReferenceProgram(self, [low.step for low in lowered], buffers, slots, repeated)

    def finish(self) -> None:
        """NumPy has nothing pending."""

    def profiling(self) -> HostTiming:
        self.timing = HostTiming(self)
        return self.timing


class HostTiming:
    """Steps of the plan by the host's clock: they run when they are called."""

    source = "host clock"

    def __init__(self, backend: ReferenceBackend) -> None:
        self.on = True
        self._backend = backend
        self._kept: list[Ran] = []

    def keep(self, position: int, start_ns: int, end_ns: int) -> None:
        """Append one step."""
        if self.on:
            self._kept.append(Ran("launch", position, "host", start_ns, start_ns, start_ns, end_ns))

    def ties(self) -> Mapping[str, Tie]:
        """It is one clock."""
        now = now_ns()
        return {"host": Tie(now, now, now)}

    def take(self) -> list[Ran]:
        kept, self._kept = self._kept, []
        return kept

    def close(self) -> None:
        self._backend.timing = None


class ReferenceProgram:
    """Steps over views of the buffers."""

    def __init__(
        self,
        backend: ReferenceBackend,
        steps: Sequence[Step],
        buffers: Mapping[str, Array],
        slots: Mapping[Value, Slot],
        repeated: Collection[str] = (),
    ) -> None:
        self._backend = backend
        self.launches = len(steps)
        self.owners = [(i,) for i in range(len(steps))]
        self._plain, self._buffers = steps, buffers
        self._slots, self._repeated = slots, repeated
        self._look_at(0)

    def _look_at(self, turn: int) -> None:
        """Have the steps read one batch of the repeated inputs."""
        slots = {
            v: replace(s, offset=s.offset + turn * s.nbytes) if s.buffer in self._repeated else s
            for v, s in self._slots.items()
        }
        self._steps = [
            (
                step,
                {v: window(view, self._buffers, slots) for v, view in step.reads.items()},
                {v: window(view, self._buffers, slots) for v, view in step.writes.items()},
            )
            for step in self._plain
        ]

    def run(self, first: int = 0, count: int = 1) -> None:
        for turn in range(first, first + count):
            if self._repeated:
                self._look_at(turn)
            for position in range(len(self._steps)):
                self.run_step(position)

    def run_step(self, position: int) -> None:
        timing = self._backend.timing
        if timing is None:
            self._compute(position)
            return
        start = now_ns()
        self._compute(position)
        timing.keep(position, start, now_ns())

    def _compute(self, position: int) -> None:
        step, reads, writes = self._steps[position]
        known = {v: np.array(a, order="C") for v, a in reads.items()}
        with np.errstate(all="ignore"):  # infinities and NaN are results, as on any device
            for node in step.nodes:
                ins = tuple(known[v] for v in node.inputs)
                known.update(zip(node.outputs, node.op.ref(*ins), strict=True))
        for v, target in writes.items():
            target[...] = known[v].reshape(target.shape)


def window(view: View, buffers: Mapping[str, Array], slots: Mapping[Value, Slot]) -> Array:
    """The strided NumPy array that a view is."""
    slot, dtype = slots[view.base], view.base.dtype
    raw = buffers[slot.buffer][slot.offset : slot.offset + slot.nbytes].view(dtype.numpy)
    if 0 in view.shape:
        return np.zeros(view.shape, dtype.numpy)
    strides = tuple(s * dtype.nbytes for s in view.strides)
    return as_strided(raw[view.offset :], view.shape, strides)
