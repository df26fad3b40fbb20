"""Any OpenCL 1.2 device: buffers, preset launches on one in-order queue, staged uploads."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from pocketgrad import kernels
from pocketgrad.backends import platforms
from pocketgrad.backends.api import Lowered
from pocketgrad.backends.events import EventTiming
from pocketgrad.backends.programs import build_all, entry_name
from pocketgrad.backends.quarantine import Verdict, quarantine
from pocketgrad.backends.runtimes import DeviceReport
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DeviceError
from pocketgrad.ir.core import Value
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
    ) -> OpenCLProgram:
        return OpenCLProgram(self, lowered, buffers, slots)

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


class OpenCLProgram:
    """Kernels with preset arguments, in order."""

    def __init__(
        self,
        backend: OpenCLBackend,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, Any],
        slots: Mapping[Value, Slot],
    ) -> None:
        cl = backend._cl
        launches = [launch for low in lowered for launch in low.rendered.launches]
        programs = build_all(backend.context, backend.device, [ln.source for ln in launches])
        self._enqueue, self._backend = cl.enqueue_nd_range_kernel, backend
        self._held = dict(buffers)  # set_args does not keep buffers alive
        self._launches: list[tuple[Any, tuple[int, ...], tuple[int, ...] | None]] = []
        self._ends: list[int] = []  # of each step in the list of launches
        self.owners: list[tuple[int, ...]] = []
        for position, low in enumerate(lowered):
            for launch in low.rendered.launches:
                if 0 in launch.global_size:
                    continue
                kernel = cl.Kernel(programs[launch.source], entry_name(launch.source))
                kernel.set_args(*_arguments(launch, buffers, slots))
                self._launches.append((kernel, launch.global_size, launch.local_size))
                self.owners.append((position,))
            self._ends.append(len(self._launches))
        self.launches = len(self._launches)

    def run(self) -> None:
        enqueue, queue, timing = self._enqueue, self._backend.queue, self._backend.timing
        if timing is None:
            for kernel, global_size, local_size in self._launches:
                enqueue(queue, kernel, global_size, local_size)
            return
        for number, (kernel, global_size, local_size) in enumerate(self._launches):
            timing.keep("launch", number, enqueue(queue, kernel, global_size, local_size))

    def run_step(self, position: int) -> None:
        start = self._ends[position - 1] if position else 0
        for kernel, global_size, local_size in self._launches[start : self._ends[position]]:
            self._enqueue(self._backend.queue, kernel, global_size, local_size)


def _arguments(
    launch: Launch, buffers: Mapping[str, Any], slots: Mapping[Value, Slot]
) -> list[Any]:
    """Each view as its buffer and the element it starts at."""
    args: list[Any] = []
    for view in launch.args:
        slot = slots[view.base]
        start = slot.offset // view.base.dtype.nbytes + view.offset
        args += [buffers[slot.buffer], np.uint64(start)]
    return args
