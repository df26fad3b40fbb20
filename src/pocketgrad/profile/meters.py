"""Channels of power and energy as joules over time, and which of them together are the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.trace.counting import unwrapped
from pocketgrad.trace.model import Channel, Kind, Series, Trace

_BATTERY = ("battery", "charger")  # not consumption: a battery is charged, a charger gives


@dataclass(frozen=True, eq=False)
class Meter:
    """A channel of power or energy as joules since its first sample, linear between ``t_ns``."""

    channel: Channel
    series: Series
    t_ns: Array
    joules: Array
    refresh_ns: int | None  # None: it changed too seldom to tell

    def covers(self, start_ns: float, end_ns: float) -> bool:
        """Whether there are samples for all of a window."""
        return len(self.t_ns) > 1 and self.t_ns[0] <= start_ns and end_ns <= self.t_ns[-1]

    def between(self, start_ns: Array, end_ns: Array) -> Array:
        """Joules of each window."""
        low, high = (np.interp(at, self.t_ns, self.joules) for at in (start_ns, end_ns))
        return np.asarray(high - low)

    def edge_error_j(self) -> float:
        """What the joules of a window are wrong by for each of its edges: one standard error."""
        if self.refresh_ns is None:
            return 0.0
        return float(self.refresh_ns / 2e9 * self.spread_w())

    def spread_w(self) -> float:
        """How much power changes from refresh to refresh."""
        power = np.diff(self.joules) * 1e9 / np.maximum(np.diff(self.t_ns), 1)
        return float(power.std()) if len(power) > 1 else 0.0


def meter(series: Series) -> Meter:
    """A series of power or energy, integrated: power holds until the next sample."""
    t_ns, values, channel = series.t_ns, series.values, series.channel
    if channel.kind is Kind.CUMULATIVE:
        joules = unwrapped(values, channel.wraps_at) if len(values) else values
    else:
        steps = values[:-1] * np.diff(t_ns) / 1e9
        joules = np.concatenate(([0.0], np.cumsum(steps)))[: len(values)]
    return Meter(channel, series, t_ns, joules, series.refresh_ns)


def meters(trace: Trace) -> list[Meter]:
    """All channels of energy and power that have samples to integrate."""
    found = [*trace.of("energy"), *trace.of("power")]
    return [meter(series) for series in found if len(series) > 1]


def main_meters(found: Sequence[Meter]) -> list[Meter]:
    """Those that together are the whole device; else all that no other one contains.

    Of several such groups the one that refreshes fastest, an energy counter before power samples.
    """
    groups: dict[str, list[Meter]] = {}
    for m in found:
        if m.channel.whole:
            groups.setdefault(m.channel.name.split("/")[0], []).append(m)
    if groups:
        return min(groups.values(), key=_preference)
    names = {m.channel.name for m in found}
    return [
        m
        for m in found
        if m.channel.within not in names and not m.channel.scope.startswith(_BATTERY)
    ]


def _preference(group: Sequence[Meter]) -> tuple[bool, float]:
    slowest = max(m.refresh_ns or np.inf for m in group)
    return any(m.channel.kind is not Kind.CUMULATIVE for m in group), slowest
