"""Joules of parts of the measured time: measured, folded over many steps, or attributed by time.

The parts of any division add up to the integral of the samples. See docs/adr/0021 for the method.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.profile.fold import PRIOR, fold
from pocketgrad.profile.intervals import Division, run_lengths, shared_growth
from pocketgrad.profile.meters import Meter
from pocketgrad.trace.profile import EnergyFigure, Label

RESOLVED = 4  # refreshes that a window must last before a sensor tells it from its surroundings
MINOR = 0.1  # channels with less of the joules do not decide the label of a sum
_ORDER = (Label.MEASURED, Label.FOLDED, Label.ATTRIBUTED, Label.UNRESOLVABLE)


def divide(meters: Sequence[Meter], division: Division) -> list[EnergyFigure]:
    """The joules of every column; for several meters their sum."""
    each = [_divided(m, division) for m in meters]
    return [total([figures[c] for figures in each]) for c in range(division.weights.shape[1])]


def total(figures: Sequence[EnergyFigure]) -> EnergyFigure:
    """The sum of independent figures, as good as the worst of those that matter."""
    joules = sum(f.joules or 0.0 for f in figures)
    error = float(np.sqrt(sum((f.error_j or 0.0) ** 2 for f in figures)))
    matter = [f for f in figures if abs(f.joules or 0.0) >= MINOR * abs(joules)] or figures
    worst = max(matter, key=lambda f: _ORDER.index(f.label))
    label = worst.label
    if label is not Label.UNRESOLVABLE and error >= abs(joules):
        return EnergyFigure(
            joules, Label.UNRESOLVABLE, error, "the error is as large as the figure"
        )
    return EnergyFigure(joules, label, error, worst.note)


def windows(meter: Meter, start_ns: Array, end_ns: Array) -> list[EnergyFigure | None]:
    """The joules of windows one by one, such as steps; None where samples do not cover one."""
    joules = meter.between(start_ns, end_ns)
    error = np.sqrt(2) * meter.edge_error_j()
    found: list[EnergyFigure | None] = []
    for start, end, value in zip(start_ns.tolist(), end_ns.tolist(), joules.tolist(), strict=True):
        if not meter.covers(start, end):
            found.append(None)
            continue
        label, note = _label(meter, end - start)
        at_least = error if label is Label.MEASURED else max(error, PRIOR * abs(value))
        found.append(EnergyFigure(value, label, at_least, note))
    return found


def _label(meter: Meter, length_ns: float) -> tuple[Label, str]:
    if meter.refresh_ns is None:
        return Label.ATTRIBUTED, f"{meter.channel.name} changed too seldom to tell its refresh"
    if length_ns >= RESOLVED * meter.refresh_ns:
        return Label.MEASURED, ""
    note = f"{meter.channel.name} refreshes every {meter.refresh_ns / 1e6:.3g} ms"
    return Label.ATTRIBUTED, note


def _divided(meter: Meter, division: Division) -> list[EnergyFigure]:
    tiles, weights = division.tiles, division.weights
    by_row = np.bincount(tiles.row, shared_growth(tiles, meter.t_ns, meter.joules), len(weights))
    direct = by_row @ weights
    columns = weights.shape[1]
    lengths, runs = run_lengths(tiles, weights.argmax(axis=1), columns)
    pure = _purity(division)
    figures = []
    folded = fold(meter, division, direct)
    span = float(tiles.end_ns.max() - tiles.start_ns.min()) if len(tiles) else 0.0
    for c in range(columns):
        joules = float(direct[c])
        label, note = _label(meter, lengths[c])
        if label is Label.MEASURED and pure[c]:
            error = float(np.sqrt(2 * runs[c])) * meter.edge_error_j()
            figures.append(EnergyFigure(joules, label, error, note))
        elif folded is not None:
            figures.append(_folded(folded.joules[c], folded.error_j[c], bool(folded.told[c]), note))
        elif meter.refresh_ns is not None and span < 2 * meter.refresh_ns:
            figures.append(EnergyFigure(joules, Label.UNRESOLVABLE, PRIOR * abs(joules), note))
        else:
            note = note or "its time is a share, by cost, of launches with other operations"
            figures.append(EnergyFigure(joules, Label.ATTRIBUTED, PRIOR * abs(joules), note))
    return _conserving(figures, float(direct.sum()))


def _folded(joules: float, error: float, told: bool, note: str) -> EnergyFigure:
    return EnergyFigure(joules, Label.FOLDED if told else Label.ATTRIBUTED, error, note)


def _purity(division: Division) -> Array:
    """Whether at least nine tenths of a column's time was its own, not a share of a launch."""
    lengths = np.bincount(
        division.tiles.row,
        division.tiles.end_ns - division.tiles.start_ns,
        len(division.weights),
    )
    own = lengths @ np.where(division.weights > 0.9, division.weights, 0)
    everything = lengths @ division.weights
    return np.asarray(own >= 0.9 * everything)


def _conserving(figures: Sequence[EnergyFigure], joules: float) -> list[EnergyFigure]:
    """What is not measured directly, scaled so that the sum is the integral."""
    direct = sum(f.joules or 0.0 for f in figures if f.label is Label.MEASURED)
    rest = sum(f.joules or 0.0 for f in figures if f.label is not Label.MEASURED)
    if rest == 0:
        return list(figures)
    scale = (joules - direct) / rest
    return [
        f
        if f.label is Label.MEASURED
        else EnergyFigure((f.joules or 0.0) * scale, f.label, f.error_j, f.note)
        for f in figures
    ]
