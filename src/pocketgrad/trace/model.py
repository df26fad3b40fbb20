"""Spans, channels with their samples, and the trace that holds them. Data only: nothing is read.

A channel says all that is needed to trust its numbers; a series never mixes two channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError, UnknownNameError

# The unit follows from the quantity, so that no two channels of one kind differ by a prefix.
UNITS: Mapping[str, str] = MappingProxyType(
    {
        "bytes": "B",
        "charge": "C",
        "count": "1",
        "current": "A",
        "energy": "J",
        "frequency": "Hz",
        "power": "W",
        "share": "%",  # utilisation, battery level
        "speed": "rpm",
        "state": "1",  # levels and flags of the device's own
        "temperature": "degC",
        "time": "ns",
        "voltage": "V",
    }
)
Scalar = str | int | float | bool


class Kind(StrEnum):
    """What one value stands for."""

    GAUGE = "gauge"  # the state at its moment
    CUMULATIVE = "cumulative"  # a counter: only differences mean anything
    AVERAGE = "interval-average"  # a mean over the source's own window before the value appeared


class Basis(StrEnum):
    """How the source came to the value."""

    MEASURED = "measured"  # a sensor
    COUNTER = "counter"  # the system counts it
    MODEL = "model"  # computed by the device or by us from other values
    REQUESTED = "requested"  # what was asked for, which the hardware may not do


@dataclass(frozen=True, slots=True)
class Channel:
    """A series of values: what it is, of what, from where, and what it already contains."""

    name: str  # unique; made of the device's own labels, never of indices
    quantity: str  # a key of UNITS
    kind: Kind
    scope: str  # 'core cpu3', 'rail VDD_IN', 'package-0', 'process', 'battery'
    source: str  # the file or command that was read
    basis: Basis = Basis.MEASURED
    wraps_at: float | None = None  # a cumulative value starts again at 0 above this
    within: str = ""  # the channel whose value already contains this one: never add both
    whole: bool = False  # the sum of a sampler's whole channels is the whole board or phone
    note: str = ""  # what a reader must know to use it rightly

    def __post_init__(self) -> None:
        if self.quantity not in UNITS:
            raise UnknownNameError("quantity", self.quantity, UNITS)

    @property
    def unit(self) -> str:
        """The unit of its values."""
        return UNITS[self.quantity]


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time on a track: a launch, an upload, an epoch."""

    name: str
    track: str
    start_ns: int
    end_ns: int
    args: Mapping[str, Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.end_ns < self.start_ns:
            raise SettingError(
                f"span '{self.name}' on {self.track} ends at {self.end_ns} ns, "
                f"before its start at {self.start_ns} ns; convert both to one clock first"
            )

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Counter:
    """One sample of a channel."""

    channel: str
    unit: str
    t_ns: int
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """The samples of one channel: its changes, and the last value seen."""

    channel: Channel
    t_ns: Array  # int64, rising
    values: Array  # float64

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def refresh_ns(self) -> int | None:
        """The median time between changes: how often the source really says something new."""
        changed = self.t_ns[1:][np.diff(self.values) != 0]
        return int(np.median(np.diff(changed))) if len(changed) > 1 else None


@dataclass(frozen=True, slots=True)
class Absent:
    """What could not be observed, and why: never a zero in its place."""

    name: str  # a sampler, or a channel
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: not available: {self.reason}"


@dataclass(frozen=True, slots=True)
class Trace:
    """All that was recorded of a run."""

    spans: tuple[Span, ...] = ()
    series: Mapping[str, Series] = field(default_factory=dict)  # by channel name
    absent: tuple[Absent, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def counters(self) -> Iterator[Counter]:
        """Every sample, channel by channel."""
        for name, series in self.series.items():
            for t, value in zip(series.t_ns.tolist(), series.values.tolist(), strict=True):
                yield Counter(name, series.channel.unit, t, value)

    def of(self, quantity: str) -> tuple[Series, ...]:
        """The series of one quantity."""
        return tuple(s for s in self.series.values() if s.channel.quantity == quantity)
