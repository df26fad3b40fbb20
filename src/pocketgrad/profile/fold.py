"""Step folding: what a slow sensor says of short operations when a step is repeated many times.

Each refresh of the sensor covers some operations for some time each. Over many steps, whose length
is no multiple of the refresh, these equations tell the power of each operation: a linear regression
with a prior (every operation takes the mean power, give or take half), so that what the sensor
cannot tell stays at the mean with an error that says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.profile.intervals import Division, overlaps
from pocketgrad.profile.meters import Meter
from pocketgrad.trace.model import Kind

PRIOR = 0.5  # how far the power of a part may be from the mean where nothing tells: one sigma
LEAST = 12  # refreshes; fewer equations tell nothing
MOST = 4000  # more would only take time
TOLD = 0.5  # a figure is told by the data if its error is below so much of what it was before
AGREES = 0.1  # the folded sum may differ by so much from the integral before both are doubted
EXACT = 1e-3  # no refresh is more exact than this, however well the equations fit
MOMENT_NS = 2000  # what a momentary value is taken to stand for
_ROUNDS = 6  # until the estimate of the noise stands still
_INSIDE = 0.999  # of an observation's window must lie in measured steps


@dataclass(frozen=True, eq=False)
class Folded:
    """Joules by column, their errors, and whether the data told them rather than the prior."""

    joules: Array
    error_j: Array
    told: Array


@dataclass(frozen=True, eq=False)
class Equations:
    """``seconds`` (observations, columns) times the power of each column gives ``joules``."""

    seconds: Array
    joules: Array


def fold(meter: Meter, division: Division, direct: Array) -> Folded | None:
    """Joules of every column by regression; None where it cannot be done or does not agree."""
    known = equations(meter, division)
    seconds = division.seconds
    if known is None or not seconds.sum() > 0 or not direct.sum() > 0:
        return None
    mean_w = direct.sum() / seconds.sum()
    prior_w = PRIOR * mean_w
    power, error = _regress(known, mean_w, prior_w)
    joules = power * seconds
    if abs(joules.sum() / direct.sum() - 1) > AGREES:
        return None
    # The sum alone tells something of a part that is most of it; that is no folding.
    from_sum = prior_w * np.sqrt(1 - seconds**2 / (seconds**2).sum())
    told = error < TOLD * from_sum
    if not told.any():
        return None
    return Folded(joules, error * seconds, told)


def equations(meter: Meter, division: Division) -> Equations | None:
    """One per refresh that fell into the measured steps; None if they are too few."""
    tiles = division.tiles
    if meter.refresh_ns is None or tiles.overlap:
        return None
    low, high, joules = _observations(meter)
    keep = _some(len(low))
    low, high, joules = low[keep], high[keep], joules[keep]
    rows = overlaps(tiles, (low, high), len(division.weights))
    inside = rows.sum(axis=1) >= _INSIDE * (high - low)
    if inside.sum() < LEAST:
        return None
    return Equations((rows[inside] / 1e9) @ division.weights, joules[inside])


def _observations(meter: Meter) -> tuple[Array, Array, Array]:
    """Windows between refreshes, and the joules in each.

    An averaging sensor speaks of the time before its value appeared; a momentary one of the moment.
    """
    series, refresh = meter.series, meter.refresh_ns or 0.0
    changed = np.flatnonzero(np.diff(series.values) != 0) + 1
    at = series.t_ns[changed]
    if meter.channel.kind is Kind.CUMULATIVE:
        return at[:-1], at[1:], np.diff(meter.joules[changed])
    if meter.channel.kind is Kind.AVERAGE:
        low = at - round(refresh)
        low[1:] = np.maximum(low[1:], at[:-1])
        return low, at, series.values[changed] * (at - low) / 1e9
    high = at + min(round(refresh), MOMENT_NS)
    return at, high, series.values[changed] * (high - at) / 1e9


def _some(count: int) -> Array:
    if count <= MOST:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, MOST).astype(np.int64))


def _regress(known: Equations, mean_w: float, prior_w: float) -> tuple[Array, Array]:
    """Power of each column and its standard error, with the noise estimated from the residuals."""
    a = known.seconds
    b = known.joules - a @ np.full(a.shape[1], mean_w)
    floor = (EXACT * float(np.abs(known.joules).mean())) ** 2 + 1e-30
    noise = max(float(b.var()), floor)
    scale, basis = np.linalg.eigh(a.T @ a)
    scale[scale < 1e-10 * scale.max()] = 0  # rounding is no information
    target = basis.T @ (a.T @ b)
    away, spread = np.zeros(a.shape[1]), np.full(a.shape[1], prior_w)
    for _ in range(_ROUNDS):
        variance = 1 / (scale / noise + 1 / prior_w**2)
        away = basis @ (variance * target / noise)
        spread = np.sqrt(basis**2 @ variance)
        free = max(len(b) - float(variance @ scale) / noise, 1.0)
        noise = max(float(((b - a @ away) ** 2).sum()) / free, floor)
    return mean_w + away, spread
