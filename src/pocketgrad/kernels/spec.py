"""What a kernel family is: a pattern of nodes it computes, parameters, and OpenCL text.

Pure: no device is touched here. ``backends/opencl.py`` builds and launches what families render.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import ClassVar, Literal

from pocketgrad.ir.core import Value
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View


@dataclass(frozen=True)
class DeviceInfo:
    """What kernels may know of a device."""

    name: str
    vendor: str
    kind: Literal["cpu", "gpu"]
    compute_units: int
    max_work_group: int
    local_mem_nbytes: int
    base_align_nbytes: int
    max_alloc_nbytes: int
    vector_width: int  # floats in a register: 16 on AVX-512, 8 on AVX2, 4 on NEON and most GPUs
    has_half: bool = True
    images_last: bool = True  # as far as vectors gain by it; not where such a kernel is wrong

    @property
    def image_lanes(self) -> int:
        """Floats of a vector along the channels of images; 0 where images lie row-major."""
        suits = self.kind == "cpu" and self.vector_width > 1
        return self.vector_width if suits and self.images_last else 0


@dataclass(frozen=True)
class Param:
    """A tuning parameter: legal values, and a default that is legal everywhere."""

    name: str
    values: tuple[int, ...]
    default: int
    meaning: str


@dataclass(frozen=True)
class KernelSource:
    """OpenCL C of one kernel. The kernel function is named ENTRY; ``defines`` are its macros.

    Equal sources are built once; several are put into one program, each between its defines and
    their undefs, so helper functions must be macros or live in cl/common.cl. ``functions``: other
    kernels that this one calls for single items, by ``entry_name``.
    """

    text: str
    defines: tuple[tuple[str, str], ...] = ()
    functions: tuple[KernelSource, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One enqueue. Each view becomes two kernel arguments: the buffer, and the element offset."""

    source: KernelSource
    args: tuple[View, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Place:
    """When a launch runs. Launches of one ``stage`` are one enqueue, its tracks lie side by side.

    A ``serial`` track is one work-item that does several launches, one after another, in the order
    of their steps; any other is a single launch with its own items. Where there are many more of
    them than ``items``, if that is not 0, they are shared among so many work-items.
    """

    stage: int
    track: int = 0
    serial: bool = False
    items: int = 0


@dataclass(frozen=True)
class Rendered:
    """What a step becomes. ``scratch``: values that live only during it, placed by the planner."""

    launches: tuple[Launch, ...]
    scratch: tuple[Value, ...] = ()


Config = Mapping[str, int]


class Kernel(ABC):
    """A kernel family."""

    name: ClassVar[str]
    params: ClassVar[tuple[Param, ...]] = ()
    far: ClassVar[bool] = False  # also numbers elements with 64 bits where 32 are not enough
    exact: ClassVar[bool] = True  # adds the products that the op means, not sums that equal them

    @abstractmethod
    def matches(self, step: Step) -> bool:
        """Whether this family can compute the step on some device."""

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Whether a configuration is legal for the step on the device."""
        return True

    def pays(self, step: Step, device: DeviceInfo) -> bool:
        """Whether it is likely to be faster than the families behind it that match."""
        return True

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """A sane configuration where nothing was tuned."""
        return {p.name: p.default for p in self.params}

    @abstractmethod
    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """The launches that compute the step."""


@cache
def template(name: str) -> str:
    """The text of cl/<name>.cl."""
    return (files("pocketgrad.kernels") / "cl" / f"{name}.cl").read_text(encoding="utf-8")


def defines(**macros: object) -> tuple[tuple[str, str], ...]:
    """Macros for a KernelSource, in the order given."""
    return tuple((k, str(v)) for k, v in macros.items())
