"""The one clock: CLOCK_MONOTONIC in integer nanoseconds, and how others are placed on it.

A device's own timebase is related to it by `align`; what wall clocks showed is kept as `Instant`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from pocketgrad.base.errors import SettingError

now_ns = time.monotonic_ns


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on three clocks: ours, since boot (Perfetto, ODPM), and wall time (logs)."""

    monotonic_ns: int
    boottime_ns: int
    realtime_ns: int


def instant() -> Instant:
    """This moment; recorded at the start and the end of a run, since wall clocks jump."""
    return Instant(now_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns())


@dataclass(frozen=True, slots=True)
class Tie:
    """A device time, and the host times before and after it could have been taken."""

    device_ns: int
    before_ns: int
    after_ns: int

    @property
    def host_ns(self) -> float:
        """The middle of the host's interval."""
        return (self.before_ns + self.after_ns) / 2


@dataclass(frozen=True, slots=True)
class Alignment:
    """host = device × rate + offset, wrong by at most about ``error_ns`` over the tied interval."""

    origin_ns: int  # the device time at which offset is exact
    offset_ns: float
    rate: float
    error_ns: float

    def host_ns(self, device_ns: int) -> int:
        """A device time on the host's clock."""
        elapsed = device_ns - self.origin_ns
        return self.origin_ns + elapsed + round(self.offset_ns + elapsed * (self.rate - 1))


def align(ties: Sequence[Tie]) -> Alignment:
    """Fit offset and drift to ties; the error is half the widest interval plus the worst residual.

    One tie gives the offset alone, with a rate of 1.
    """
    if not ties:
        raise SettingError("clocks cannot be aligned without a tie: take one before the run")
    origin = ties[0].device_ns
    x = [tie.device_ns - origin for tie in ties]
    y = [tie.host_ns - tie.device_ns for tie in ties]  # small numbers: exact in floats
    mean_x, mean_y = fmean(x), fmean(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    slope = (
        sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
        if spread
        else 0.0
    )
    offset = mean_y - slope * mean_x
    residual = max(abs(offset + slope * a - b) for a, b in zip(x, y, strict=True))
    half = max((tie.after_ns - tie.before_ns) / 2 for tie in ties)
    return Alignment(origin, offset, 1 + slope, half + residual)
