"""Any OpenCL 1.2 device: buffers, preset launches on one in-order queue, staged uploads."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pocketgrad import kernels
from pocketgrad.backends import platforms
from pocketgrad.backends.api import Lowered, owners_of, stages
from pocketgrad.backends.events import EventTiming
from pocketgrad.backends.programs import build_all
from pocketgrad.backends.quarantine import Verdict, quarantine
from pocketgrad.backends.runtimes import DeviceReport
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DeviceError
from pocketgrad.ir.core import Value
from pocketgrad.kernels.bundle import Enqueue, bundle, entry_name, repeatable, worth
from pocketgrad.kernels.spec import DeviceInfo, Launch
from pocketgrad.plan.plan import Slot, Step

LOG = logging.getLogger("pocketgrad")
STAGES = 2  # uploads in flight: one travels while the next is prepared


def describe(report: DeviceReport) -> DeviceInfo:
    """What kernels may know of a device that was probed."""
    kind: Literal["cpu", "gpu"] = "gpu" if report.kind == "gpu" else "cpu"
    width = report.vector_width_float if kind == "cpu" else 4
    return DeviceInfo(
        name=report.name,
        vendor=report.vendor,
        kind=kind,
        compute_units=report.compute_units,
        max_work_group=report.max_work_group,
        local_mem_nbytes=report.local_mem_nbytes,
        base_align_nbytes=report.base_align_nbytes,
        max_alloc_nbytes=report.max_alloc_nbytes,
        vector_width=max(4, min(16, width)),
        has_half=report.fp16,
    )


class OpenCLBackend:
    """One device with one in-order queue."""

    def __init__(self, report: DeviceReport) -> None:
        device = platforms.open_device(report)
        import pyopencl as cl  # after open_device: it decides which drivers the loader sees

        # Drivers print notes on every build; an error has its own exception.
        warnings.filterwarnings("ignore", category=cl.CompilerWarning)
        self._cl = cl
        self.report = report
        self.name = report.ident
        self.info = describe(report)
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.timing: EventTiming | None = None
        self.excluded: Mapping[str, Verdict] = {v.family: v for v in quarantine().failed(report)}
        self._announced: set[str] = set()
        self._staged: list[tuple[Any, Array]] = []

    def alloc(self, nbytes: int) -> Any:
        if nbytes > self.info.max_alloc_nbytes:
            raise DeviceError(
                f"device {self.name} allows {self.info.max_alloc_nbytes:,} bytes in one buffer, "
                f"{nbytes:,} are needed; use a smaller batch"
            )
        try:
            return self._cl.Buffer(self.context, self._cl.mem_flags.READ_WRITE, max(nbytes, 1))
        except self._cl.Error as error:
            raise DeviceError(
                f"device {self.name} could not allocate {nbytes:,} bytes ({error}); "
                "use a smaller batch or model"
            ) from error

    def fill(self, buffer: Any, byte: int) -> None:
        pattern = np.full(1, byte, np.uint8)
        self._cl.enqueue_fill_buffer(self.queue, buffer, pattern, 0, buffer.size)

    def write(self, buffer: Any, offset: int, data: Array) -> None:
        if data.nbytes == 0:
            return
        if len(self._staged) >= STAGES:
            self._staged.pop(0)[0].wait()
        held = np.array(data, order="C")  # the caller may change its own at once
        event = self._cl.enqueue_copy(
            self.queue, buffer, held, dst_offset=offset, is_blocking=False
        )
        self._staged.append((event, held))
        if self.timing is not None:
            self.timing.keep("upload", held.nbytes, event)

    def read(self, buffer: Any, offset: int, out: Array) -> None:
        if out.nbytes:
            self._cl.enqueue_copy(self.queue, out, buffer, src_offset=offset, is_blocking=True)

    def lower(self, step: Step, strict: bool = False) -> Lowered:
        kernel, config = kernels.select(step, self.info, self.excluded, strict)
        if self.excluded:
            self._announce(step, kernel.name)
        return Lowered(step, kernel.name, kernel.render(step, config, self.info))

    def bind(
        self,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, Any],
        slots: Mapping[Value, Slot],
        repeated: Collection[str] = (),
    ) -> OpenCLProgram:
        return OpenCLProgram(self, lowered, buffers, slots, repeated)

    def _announce(self, step: Step, instead: str) -> None:
        """Say once for each family in quarantine that another does its work."""
        for family in kernels.able(step):
            if family == instead:
                return
            verdict = self.excluded.get(family)
            if verdict is not None and family not in self._announced:
                self._announced.add(family)
                LOG.warning(
                    "kernel family '%s' is not used on %s, '%s' replaces it, more slowly: its "
                    "self-check found %s. Update the driver, then run 'pocketgrad doctor'",
                    family, self.name, instead, verdict.reason,
                )  # fmt: skip

    def finish(self) -> None:
        self.queue.finish()
        self._staged.clear()

    def profiling(self) -> EventTiming:
        self.finish()
        self.timing = EventTiming(self, self._cl)
        return self.timing


@dataclass(frozen=True, eq=False)
class Preset:
    """A kernel with its arguments. ``turns`` are those that tell batches of repeated inputs apart:
    argument number, and what it is: start + first·step + count·span.
    """

    kernel: Any
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    turns: tuple[tuple[int, int, int, int], ...] = ()


class OpenCLProgram:
    """Kernels with preset arguments, in order."""

    def __init__(
        self,
        backend: OpenCLBackend,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, Any],
        slots: Mapping[Value, Slot],
        repeated: Collection[str] = (),
    ) -> None:
        self._backend, self._lowered, self._slots = backend, lowered, slots
        self._repeated = frozenset(repeated)
        self._held = dict(buffers)  # set_args does not keep buffers alive
        self._enqueue = backend._cl.enqueue_nd_range_kernel
        found = stages(lowered)
        self._loops = bool(repeated) and repeatable(found)
        self._presets = self._preset(
            [bundle(ms, slots, self._repeated) if worth(ms) else ms[0][0] for ms in found]
        )
        self._launches = [(p.kernel, p.global_size, p.local_size) for p in self._presets]
        self._turn = (0, 1)
        self._steps: list[list[Preset]] = []  # one by one, made when asked for
        self.launches = len(self._launches)
        self.owners = owners_of(lowered)

    def run(self, first: int = 0, count: int = 1) -> None:
        enqueue, queue, timing = self._enqueue, self._backend.queue, self._backend.timing
        together = self._loops or count == 1
        for turn in [(first, count)] if together else [(first + i, 1) for i in range(count)]:
            if turn != self._turn:
                self._turn_to(*turn)
            if timing is None:
                for kernel, global_size, local_size in self._launches:
                    enqueue(queue, kernel, global_size, local_size)
                continue
            for number, (kernel, global_size, local_size) in enumerate(self._launches):
                timing.keep("launch", number, enqueue(queue, kernel, global_size, local_size))

    def run_step(self, position: int) -> None:
        if not self._steps:
            mine = [
                [ln for ln in low.rendered.launches if 0 not in ln.global_size]
                for low in self._lowered
            ]
            presets = iter(self._preset([launch for launches in mine for launch in launches]))
            self._steps = [[next(presets) for _ in launches] for launches in mine]
        for preset in self._steps[position]:
            self._enqueue(self._backend.queue, preset.kernel, preset.global_size, preset.local_size)

    def _turn_to(self, first: int, count: int) -> None:
        """Have the kernels read these batches of the repeated inputs."""
        for preset in self._presets:
            for index, start, step, span in preset.turns:
                preset.kernel.set_arg(index, np.uint64(start + first * step + count * span))
        self._turn = (first, count)

    def _preset(self, launches: Sequence[Launch | Enqueue]) -> list[Preset]:
        """Built kernels with their arguments and sizes."""
        backend = self._backend
        programs = build_all(backend.context, backend.device, [ln.source for ln in launches])
        found = []
        for launch in launches:
            kernel = backend._cl.Kernel(programs[launch.source], entry_name(launch.source))
            if isinstance(launch, Enqueue):
                found.append(self._preset_bundle(kernel, launch))
            else:
                found.append(self._preset_launch(kernel, launch))
        return found

    def _preset_bundle(self, kernel: Any, launch: Enqueue) -> Preset:
        args = [self._held[name] for name in launch.buffers]
        turns: tuple[tuple[int, int, int, int], ...] = ()
        if launch.turns:
            turns = ((len(args), 0, 1, 0), (len(args) + 1, 0, 1, 1))
            args += [np.uint64(0), np.uint64(1)]
        kernel.set_args(*args)
        return Preset(kernel, (launch.items,), (1,), turns)

    def _preset_launch(self, kernel: Any, launch: Launch) -> Preset:
        """Each view as its buffer and the element it starts at."""
        args: list[Any] = []
        turns = []
        for view in launch.args:
            slot, size = self._slots[view.base], view.base.dtype.nbytes
            start = slot.offset // size + view.offset
            args += [self._held[slot.buffer], np.uint64(start)]
            if slot.buffer in self._repeated:
                turns.append((len(args) - 1, start, slot.nbytes // size, 0))
        kernel.set_args(*args)
        return Preset(kernel, launch.global_size, launch.local_size, tuple(turns))
