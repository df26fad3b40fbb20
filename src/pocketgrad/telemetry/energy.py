"""Energy and shares of time from samples: pure arithmetic over real timestamps.

The paper's equation 4 stands beside the integrals, so that its numbers can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError
from pocketgrad.trace.counting import unwrapped
from pocketgrad.trace.model import Series


def trapezoid_j(t_ns: Array, power_w: Array) -> float:
    """The integral of instantaneous power, linear between samples; 0 for less than two."""
    _same_length(t_ns, power_w)
    return float(np.trapezoid(power_w, t_ns - t_ns[0]) / 1e9) if len(t_ns) > 1 else 0.0


def held_j(t_ns: Array, power_w: Array) -> float:
    """The integral when each value holds until the next: for what is stored on change only."""
    _same_length(t_ns, power_w)
    return float(np.sum(power_w[:-1] * np.diff(t_ns)) / 1e9) if len(t_ns) > 1 else 0.0


def paper_eq4_j(interval_ns: int, power_w: Sequence[float]) -> float:
    """Equation 4 of the paper: a nominal interval times the sum, whatever the real times were."""
    return interval_ns * sum(power_w) / 1e9


def held_between(t_ns: Array, values: Array, start_ns: float, end_ns: float) -> float | None:
    """The integral (value × ns) over a window; None unless the samples cover all of it."""
    _same_length(t_ns, values)
    if len(t_ns) == 0 or start_ns < t_ns[0] or end_ns > t_ns[-1]:
        return None
    inside = t_ns[(t_ns > start_ns) & (t_ns < end_ns)]
    edges = np.concatenate(([start_ns], inside, [end_ns]))
    at = np.searchsorted(t_ns, edges[:-1], side="right") - 1
    return float(np.sum(values[at] * np.diff(edges)))


def grown(series: Series) -> float:
    """How much a cumulative series grew in all; 0 for less than two samples."""
    if len(series) < 2:
        return 0.0
    return float(unwrapped(series.values, series.channel.wraps_at)[-1])


def grown_between(series: Series, start_ns: float, end_ns: float) -> float | None:
    """How much a counter grew within a window, linear between its changes; None if not covered."""
    t_ns = series.t_ns
    if len(t_ns) < 2 or start_ns < t_ns[0] or end_ns > t_ns[-1]:
        return None
    total = unwrapped(series.values, series.channel.wraps_at)
    low, high = np.interp([start_ns, end_ns], t_ns, total)
    return float(high - low)


def utilisation(busy: float, idle: float) -> float | None:
    """Equation 1: the share of time a core was active, in percent; None if no time passed."""
    busy, idle = max(busy, 0.0), max(idle, 0.0)  # iowait may decrease
    return 100 * busy / (busy + idle) if busy + idle else None


def average_utilisation(cores: Sequence[float]) -> float | None:
    """Equation 2: the mean over cores."""
    return sum(cores) / len(cores) if cores else None


def idle_state_ratio(utilisations: Sequence[float]) -> float | None:
    """The paper's share of samples with a utilisation of 0, in percent; depends on the period."""
    if not utilisations:
        return None
    return 100 * sum(1 for u in utilisations if u == 0) / len(utilisations)


def _same_length(t_ns: Array, values: Array) -> None:
    if len(t_ns) != len(values):
        raise SettingError(f"{len(t_ns)} times and {len(values)} values; each value needs its time")
    if len(t_ns) > 1 and np.any(np.diff(t_ns) < 0):
        raise SettingError("the times go backwards; use CLOCK_MONOTONIC, not wall time")
