"""Plans, launches and costs for a device that is not there; it computes nothing and says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pocketgrad import kernels
from pocketgrad.backends.api import Bound, Lowered, Profiling, owners_of
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DeviceError
from pocketgrad.ir.core import Value
from pocketgrad.kernels.spec import DeviceInfo
from pocketgrad.plan.plan import Slot, Step

INFO = DeviceInfo(
    name="null",
    vendor="pocketgrad",
    kind="cpu",
    compute_units=4,
    max_work_group=256,
    local_mem_nbytes=32_768,
    base_align_nbytes=128,
    max_alloc_nbytes=1 << 62,
    vector_width=8,
)


@dataclass(frozen=True)
class NullBuffer:
    """A size."""

    nbytes: int


class NullBackend:
    """Lowers steps with the real kernel families for a made-up device."""

    name = "null"

    def __init__(self, info: DeviceInfo = INFO) -> None:
        self.info = info

    def alloc(self, nbytes: int) -> NullBuffer:
        return NullBuffer(nbytes)

    def fill(self, buffer: NullBuffer, byte: int) -> None:
        """There is nothing to fill."""

    def write(self, buffer: NullBuffer, offset: int, data: Array) -> None:
        """There is nothing to write to."""

    def read(self, buffer: NullBuffer, offset: int, out: Array) -> None:
        raise self._refusal()

    def lower(self, step: Step, strict: bool = False) -> Lowered:
        kernel, config = kernels.select(step, self.info, strict=strict)
        return Lowered(step, kernel.name, kernel.render(step, config, self.info))

    def bind(
        self,
        lowered: Sequence[Lowered],
        buffers: Mapping[str, NullBuffer],
        slots: Mapping[Value, Slot],
        repeated: Collection[str] = (),
    ) -> Bound:
        owners = owners_of(lowered)
        return NullProgram(len(owners), owners, self._refusal())

    def finish(self) -> None:
        """Nothing is pending."""

    def profiling(self) -> Profiling:
        raise self._refusal()

    def _refusal(self) -> DeviceError:
        return DeviceError(
            "the null backend plans and costs a step but cannot compute it; "
            "ask for device='auto', 'reference' or an OpenCL device"
        )


@dataclass
class NullProgram:
    """Counts launches."""

    launches: int
    owners: Sequence[tuple[int, ...]]
    refusal: DeviceError

    def run(self, first: int = 0, count: int = 1) -> None:
        raise self.refusal

    def run_step(self, position: int) -> None:
        raise self.refusal
