"""Samples as curves to draw: counters become rates, cores become shares, long ones thinner.

A value holds from its time to the next one; where nothing is known, it is NaN.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.trace.counting import unwrapped
from pocketgrad.trace.model import Channel, Kind, Series, Trace

# What a counter of a quantity is per second, and by which factor its ns, J, ... are divided.
RATES = {
    "bytes": ("B/s", 1e9),
    "charge": ("A", 1e9),
    "count": ("1/s", 1e9),
    "energy": ("W", 1e9),
    "time": ("%", 100.0),  # ns per ns
}
_CORE = re.compile(r"^(?:cpuidle|proc_stat)/(cpu\d+)/(?:idle|busy)$")


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """A drawable series; ``end_ns`` is when its last value stops being known."""

    name: str
    unit: str
    scope: str
    t_ns: Array  # int64, rising
    values: Array  # float64
    end_ns: int
    source: str = ""
    basis: str = ""
    refresh_ns: int | None = None

    def __len__(self) -> int:
        return len(self.t_ns)

    def within(self, start_ns: int, end_ns: int) -> Curve:
        """The part in a window, with the value that holds at its start."""
        first = max(0, int(np.searchsorted(self.t_ns, start_ns, side="right")) - 1)
        last = int(np.searchsorted(self.t_ns, end_ns))
        t_ns = np.maximum(self.t_ns[first:last], start_ns)
        return self._with(t_ns, self.values[first:last], min(self.end_ns, end_ns))

    def thinned(self, most: int) -> Curve:
        """At most about ``most`` values: of every stretch the least and the greatest, in order."""
        if len(self) <= most or most < 2:
            return self
        edges = np.linspace(0, len(self), most // 2 + 1).astype(int)
        kept: list[int] = []
        for low, high in pairwise(edges.tolist()):
            part = self.values[low:high]
            if len(part) and np.isnan(part).all():
                kept.append(low)
            elif len(part):
                kept += sorted({low + int(np.nanargmin(part)), low + int(np.nanargmax(part))})
        return self._with(self.t_ns[kept], self.values[kept], self.end_ns)

    def _with(self, t_ns: Array, values: Array, end_ns: int) -> Curve:
        same = (self.source, self.basis, self.refresh_ns)
        return Curve(self.name, self.unit, self.scope, t_ns, values, end_ns, *same)


def curve(series: Series) -> Curve:
    """A gauge as it is; a counter as its growth per second between its changes."""
    channel = series.channel
    end_ns = int(series.t_ns[-1]) if len(series) else 0
    if channel.kind is not Kind.CUMULATIVE or channel.quantity not in RATES:
        return _curve(channel, channel.unit, series, series.t_ns, series.values, end_ns)
    unit, scale = RATES[channel.quantity]
    t_ns, grown = series.t_ns, unwrapped(series.values, channel.wraps_at)
    elapsed = np.diff(t_ns)
    rates = np.diff(grown) * scale / np.maximum(elapsed, 1)
    return _curve(channel, unit, series, t_ns[:-1], rates, end_ns)


def _curve(
    channel: Channel, unit: str, series: Series, t_ns: Array, values: Array, end_ns: int
) -> Curve:
    return Curve(
        channel.name,
        unit,
        channel.scope,
        t_ns,
        values,
        end_ns,
        channel.source,
        str(channel.basis),
        series.refresh_ns,
    )


def cores(trace: Trace) -> tuple[Curve, ...]:
    """How busy each core was, in percent: from cpuidle where it is, else from proc_stat."""
    names = {match.group(1) for name in trace.series if (match := _CORE.match(name))}
    found = (_core(trace, name) for name in sorted(names, key=lambda n: (len(n), n)))
    return tuple(c for c in found if c is not None)


def _core(trace: Trace, core: str) -> Curve | None:
    idle = trace.series.get(f"cpuidle/{core}/idle")
    if idle is not None and len(idle) > 1:
        slept = curve(idle)
        shares = np.clip(100 - slept.values, 0, 100)  # a long sleep counts when it ends
        return Curve(
            core,
            "%",
            f"core {core}",
            slept.t_ns,
            shares,
            slept.end_ns,
            slept.source,
            slept.basis,
            slept.refresh_ns,
        )
    pair = [trace.series.get(f"proc_stat/{core}/{state}") for state in ("busy", "idle")]
    busy, waiting = pair
    if busy is None or waiting is None or min(len(busy), len(waiting)) < 2:
        return None
    return _from_ticks(core, busy, waiting)


def _from_ticks(core: str, busy: Series, waiting: Series) -> Curve:
    start = max(int(busy.t_ns[0]), int(waiting.t_ns[0]))
    end = min(int(busy.t_ns[-1]), int(waiting.t_ns[-1]))
    edges = np.union1d(busy.t_ns, waiting.t_ns)
    edges = edges[(edges >= start) & (edges <= end)]
    grown = [
        np.diff(np.interp(edges, s.t_ns, unwrapped(s.values, s.channel.wraps_at)))
        for s in (busy, waiting)
    ]
    total = grown[0] + grown[1]
    shares = np.divide(100 * grown[0], total, out=np.full(len(total), np.nan), where=total > 0)
    refresh = [s.refresh_ns for s in (busy, waiting) if s.refresh_ns]
    return Curve(
        core,
        "%",
        f"core {core}",
        edges[:-1],
        shares,
        end,
        busy.channel.source,
        str(busy.channel.basis),
        min(refresh) if refresh else None,
    )


def mean_of(curves: tuple[Curve, ...], name: str) -> Curve | None:
    """The mean of curves of one unit, where any is known; None without curves."""
    known = [c for c in curves if len(c)]
    if not known:
        return None
    edges = np.unique(np.concatenate([c.t_ns for c in known]))
    rows = np.full((len(known), len(edges)), np.nan)
    for row, c in zip(rows, known, strict=True):
        at = np.searchsorted(c.t_ns, edges, side="right") - 1
        inside = (at >= 0) & (edges < c.end_ns)
        row[inside] = c.values[at[inside]]
    counted = np.sum(~np.isnan(rows), axis=0)
    sums = np.nansum(rows, axis=0)
    means = np.divide(sums, counted, out=np.full(len(edges), np.nan), where=counted > 0)
    return Curve(name, known[0].unit, "mean", edges, means, max(c.end_ns for c in known))


def time_mean(c: Curve, start_ns: int, end_ns: int) -> float | None:
    """The mean over a window, each value weighted by how long it held; None if nothing is known."""
    part = c.within(start_ns, end_ns)
    lengths = np.diff(np.append(part.t_ns, part.end_ns)).astype(float)
    known = ~np.isnan(part.values) & (lengths > 0)
    if not known.any():
        return None
    return float(np.average(part.values[known], weights=lengths[known]))
