"""What a profile holds: launches and when each ran, and time, bytes and joules joined by operation.

Data only: `profile` measures and joins it, `report` draws it. All times are nanoseconds on our
clock (`clock.now_ns`); device times were moved there, see ``Profile.clocks``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.trace import codec
from pocketgrad.trace.clock import Alignment
from pocketgrad.trace.model import Absent, Scalar, Trace

FORMAT = 1


class Work(StrEnum):
    """What time was spent on."""

    COMPUTE = "compute"
    COPY = "copy"  # data moved as it is
    LAYOUT = "layout"  # data moved to lie otherwise: transposed, padded, packed
    GAP = "gap"  # no launch ran


class Label(StrEnum):
    """How far an energy figure is to be trusted."""

    MEASURED = "measured"  # the sensor tells this window from its surroundings
    FOLDED = "folded"  # many repeated steps laid over each other tell it
    ATTRIBUTED = "attributed"  # a part, by time, of what was measured of something longer
    UNRESOLVABLE = "not resolvable"  # its error is as large as itself, or nothing covers it


@dataclass(frozen=True, slots=True)
class EnergyFigure:
    """Joules, and how they are known. Figures of parts add up to that of the whole.

    None joules: no sample covers the window. A figure that is not resolvable may still have
    joules, so that sums hold; a reader must not quote it alone.
    """

    joules: float | None
    label: Label
    error_j: float | None  # one standard error, or half the possible range where that is known
    note: str = ""  # why it has this label


@dataclass(frozen=True, slots=True)
class OpShare:
    """One operation in a launch, and the share of the launch's time that is counted as its own."""

    op: str  # 'conv2d'
    scope: str  # the layer: 'features.0'
    phase: str  # forward, backward, update
    share: float  # 0 to 1; the shares of a launch add up to 1
    flops: int


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """A launch of the plan: the same in every step. ``Events.launch`` counts in this list.

    With more than one op, time was divided between them by cost and not measured apart.
    """

    name: str  # the ops as a person reads them: 'conv2d+add+relu'
    kernel: str  # the kernel family
    ops: tuple[OpShare, ...]
    scope: str  # of the op with the largest share
    phase: str
    work: Work
    flops: int
    nbytes: int  # read and written, from the plan
    queue: str = "queue 0"

    @property
    def fused(self) -> bool:
        """Whether time had to be divided between operations."""
        return len(self.ops) > 1


@dataclass(frozen=True, slots=True)
class Event:
    """One launch in one step."""

    launch: int  # in Profile.launches
    step: int  # StepRow.number
    queued_ns: int  # handed to the queue by the host
    submitted_ns: int  # handed to the device by the driver
    start_ns: int
    end_ns: int


@dataclass(frozen=True, eq=False, slots=True)
class Events:
    """Every launch of every recorded step, as columns (int64) of equal length, by start."""

    launch: Array
    step: Array
    queued_ns: Array
    submitted_ns: Array
    start_ns: Array
    end_ns: Array

    def __len__(self) -> int:
        return len(self.launch)

    def __iter__(self) -> Iterator[Event]:
        columns = (getattr(self, name).tolist() for name in self.__slots__)
        return (Event(*row) for row in zip(*columns, strict=True))

    def of_step(self, number: int) -> Events:
        """Those of one step."""
        rows = np.flatnonzero(self.step == number)
        return Events(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, eq=False, slots=True)
class OpRow:
    """An operation of a layer in a phase, over all its launches; gaps have a row of their own.

    ``step_ns`` has one raw value per measured (not discarded) step, in the order of the steps.
    """

    op: str
    scope: str
    phase: str
    work: Work
    launches: int  # per step
    flops: int  # per step
    nbytes: int  # per step
    step_ns: Array  # float64
    shared: bool  # some of it is a share, by cost, of a launch with other operations
    energy: EnergyFigure | None = None  # of EnergyTotal.steps together; None without a sensor

    @property
    def median_ns(self) -> float:
        """Time in the median step; 0 when no step was measured."""
        return float(np.median(self.step_ns)) if len(self.step_ns) else 0.0


@dataclass(frozen=True, eq=False, slots=True)
class GroupRow:
    """All operations of one layer, or of one phase; the same columns as `OpRow`."""

    name: str
    launches: int
    flops: int
    nbytes: int
    step_ns: Array
    energy: EnergyFigure | None = None

    @property
    def median_ns(self) -> float:
        """Time in the median step; 0 when no step was measured."""
        return float(np.median(self.step_ns)) if len(self.step_ns) else 0.0


@dataclass(frozen=True, slots=True)
class StepRow:
    """One training step, from the end of the step before (or its first host work) to its end."""

    number: int
    start_ns: int
    end_ns: int
    busy_ns: int  # at least one launch ran
    discarded: bool  # a warm-up: in the timeline, not in the statistics
    energy: EnergyFigure | None = None

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.start_ns

    @property
    def gap_ns(self) -> int:
        """No launch ran."""
        return self.duration_ns - self.busy_ns


@dataclass(frozen=True, slots=True)
class EnergyTotal:
    """What one power or energy channel says of all measured steps."""

    channel: str  # a key of Trace.series
    scope: str  # 'rail VDD_IN', 'package-0'
    main: bool  # the sum of the main ones stands in ops, layers, phases and steps
    figure: EnergyFigure
    window_ns: int  # how long the steps that it covers took
    paper_j: float | None  # equation 4 of the paper: nominal interval times sum of power samples
    steps: int = 0  # measured steps that its samples cover: the figures are of these


@dataclass(frozen=True, eq=False, slots=True)
class MemoryCurve:
    """Bytes in use by kind while each launch runs, from the plan: shape (launches, kinds).

    What the process was measured to hold is in the trace, in channels of quantity 'bytes'.
    """

    kinds: tuple[str, ...]  # parameters, gradients, optimizer state, input, activations, workspace
    nbytes: Array  # int64
    allocated_nbytes: int  # all buffers together, whatever is in use

    @property
    def peak_nbytes(self) -> int:
        """The largest sum in use at one launch."""
        return int(self.nbytes.sum(axis=1).max()) if self.nbytes.size else 0


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What the device can do at best: measured here, with how."""

    name: str  # 'arithmetic' or 'memory'
    per_s: float
    unit: str  # 'flop/s' or 'B/s'
    how: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A number about the whole run; ``paper``: as a paper defines it, to compare with its tables.

    A corrected one of the same name, where there is one, stands beside it.
    """

    name: str
    value: float | None  # None: ``how`` says why not
    unit: str
    how: str
    paper: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Overhead:
    """What profiling itself cost: sampling threads, and steps with and without events in turn."""

    sampling_cpu_ns: int = 0
    sampling_elapsed_ns: int = 0
    polls: int = 0
    late: int = 0
    stretched: float = 1.0  # periods were made this many times longer to stay within the budget
    plain_step_ns: Array = field(default_factory=lambda: np.empty(0))
    profiled_step_ns: Array = field(default_factory=lambda: np.empty(0))

    @property
    def of_one_core(self) -> float:
        """The share of one core that sampling took, 0 to 1."""
        return self.sampling_cpu_ns / self.sampling_elapsed_ns if self.sampling_elapsed_ns else 0.0

    @property
    def slowdown(self) -> float | None:
        """Median profiled step over median plain step, less 1; None if that was not measured."""
        if not len(self.plain_step_ns) or not len(self.profiled_step_ns):
            return None
        return float(np.median(self.profiled_step_ns) / np.median(self.plain_step_ns)) - 1


@dataclass(frozen=True, eq=False, slots=True)
class Profile:
    """All that was measured of some training steps.

    ``trace`` has the samples, and host spans on track 'host' (load, upload, enqueue, wait, read);
    launches are in ``events`` and not repeated as spans. ``absent`` answers first for power,
    temperature, GPU and launch times as a whole, then for each sampler.
    """

    metadata: Mapping[str, Scalar]  # model, batch, device, driver, timing, steps, versions, …
    launches: tuple[LaunchRow, ...]
    events: Events
    steps: tuple[StepRow, ...]
    ops: tuple[OpRow, ...]  # longest first
    layers: tuple[GroupRow, ...]  # longest first
    phases: tuple[GroupRow, ...]  # in the order they run, then the gaps
    trace: Trace
    clocks: Mapping[str, Alignment] = field(default_factory=dict)  # by queue
    memory: MemoryCurve | None = None
    ceilings: tuple[Ceiling, ...] = ()
    energy: tuple[EnergyTotal, ...] = ()
    metrics: tuple[Metric, ...] = ()
    overhead: Overhead = field(default_factory=Overhead)
    absent: tuple[Absent, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def measured_steps(self) -> tuple[StepRow, ...]:
        """Those that count: the warm-ups left out."""
        return tuple(step for step in self.steps if not step.discarded)


def to_json(profile: Profile) -> dict[str, Any]:
    """As plain lists, numbers and texts, which `from_json` takes back unchanged."""
    return {"format": FORMAT, "profile": codec.encode(profile)}


def from_json(found: Mapping[str, Any]) -> Profile:
    """A profile written by `to_json`; DataError when it is something else."""
    if found.get("format") != FORMAT:
        raise DataError(
            f"this is no profile of format {FORMAT} but of {found.get('format')!r}; "
            "write it again with `pocketgrad profile --out DIR`"
        )
    try:
        profile: Profile = codec.decode(Profile, found["profile"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"this profile is damaged ({error!r}); measure it again") from None
    return profile
