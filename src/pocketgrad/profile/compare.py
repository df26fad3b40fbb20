"""Two profiles side by side: what got slower, by operation, and whether that is more than noise.

The test is Mann and Whitney's on the raw times per step, which assumes no distribution; with many
operations tested at once, Holm's correction keeps the chance of any false alarm at 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.units import duration
from pocketgrad.trace.profile import OpRow, Profile

ALPHA = 0.05
LEAST = 4  # steps on either side; of fewer no test says anything
_STEP = ("(step)", "", "")


@dataclass(frozen=True, slots=True)
class Change:
    """One operation (or the whole step) in both profiles; None where it does not occur."""

    op: str
    scope: str
    phase: str
    before_ns: float | None  # medians
    after_ns: float | None
    p: float | None  # corrected; None if not tested: too few steps, or on one side only
    significant: bool

    @property
    def difference_ns(self) -> float:
        """By how much longer the median is."""
        return (self.after_ns or 0.0) - (self.before_ns or 0.0)

    def cells(self) -> tuple[str, ...]:
        """As a row of text; '*' marks what is more than noise."""

        def shown(ns: float | None) -> str:
            return "-" if ns is None else duration(ns / 1e9)

        ratio = "-" if self.ratio is None else f"{100 * (self.ratio - 1):+.1f} %"
        p = "not tested" if self.p is None else f"{self.p:.3g}{' *' if self.significant else ''}"
        times = (shown(self.before_ns), shown(self.after_ns))
        return (self.op, self.scope, self.phase, *times, ratio, p)

    @property
    def ratio(self) -> float | None:
        """After over before; None if one is missing or no time."""
        if not self.before_ns or self.after_ns is None:
            return None
        return self.after_ns / self.before_ns


@dataclass(frozen=True, slots=True)
class Comparison:
    """The step, then all operations, largest difference first; and what makes it doubtful."""

    step: Change
    ops: tuple[Change, ...]
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("operation", "layer", "phase", "before", "after", "change", "p")
        ]
        rows += [change.cells() for change in (self.step, *self.ops)]
        widths = [max(len(row[i]) for row in rows) for i in range(7)]
        lines = [
            "  ".join(
                c.rjust(w) if i > 2 else c.ljust(w)
                for i, (c, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *(f"note: {w}" for w in self.warnings)])


def compare(before: Profile, after: Profile) -> Comparison:
    """What changed from one profile to another."""
    old, new = _times(before), _times(after)
    keys = list(dict.fromkeys((*old, *new)))
    raw = {
        key: mann_whitney(old[key], new[key])
        for key in keys
        if key in old and key in new and min(len(old[key]), len(new[key])) >= LEAST
    }
    corrected = dict(zip(raw, holm(list(raw.values())), strict=True))
    changes = [_change(key, old.get(key), new.get(key), corrected.get(key)) for key in keys]
    ops = sorted(changes[1:], key=lambda c: -abs(c.difference_ns))
    return Comparison(changes[0], tuple(ops), tuple(_doubts(before, after)))


def _times(profile: Profile) -> dict[tuple[str, str, str], Array]:
    steps = profile.measured_steps
    found = {_STEP: np.array([step.duration_ns for step in steps], np.float64)}
    for row in profile.ops:
        key = _key(row)
        found[key] = found[key] + row.step_ns if key in found else row.step_ns
    return found


def _key(row: OpRow) -> tuple[str, str, str]:
    return (row.op, row.scope, row.phase)


def _change(
    key: tuple[str, str, str], old: Array | None, new: Array | None, p: float | None
) -> Change:
    medians = [float(np.median(t)) if t is not None and len(t) else None for t in (old, new)]
    return Change(*key, medians[0], medians[1], p, p is not None and p < ALPHA)


def mann_whitney(first: Array, second: Array) -> float:
    """The two-sided probability of ranks at least this uneven if nothing differed.

    By the normal approximation with correction for ties and continuity.
    """
    n, m = len(first), len(second)
    both = np.concatenate((first, second))
    _, place, count = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    u = float(ranks[:n].sum()) - n * (n + 1) / 2
    total = n + m
    ties = float((count**3 - count).sum())
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(abs(u - n * m / 2) - 0.5, 0.0) / sqrt(variance)
    return erfc(z / sqrt(2))


def holm(p: Sequence[float]) -> list[float]:
    """Probabilities corrected for testing that many at once."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    found = [0.0] * len(p)
    reached = 0.0
    for place, i in enumerate(order):
        reached = max(reached, min(1.0, (len(p) - place) * p[i]))
        found[i] = reached
    return found


def _doubts(before: Profile, after: Profile) -> list[str]:
    found = []
    for name in ("device", "driver", "batch", "model", "timing"):
        a, b = before.metadata.get(name), after.metadata.get(name)
        if a != b:
            found.append(f"{name} differs: {a} before, {b} after")
    few = min(len(before.measured_steps), len(after.measured_steps))
    if few < LEAST:
        found.append(f"one profile has {few} measured steps; a test needs {LEAST}: run more")
    return found
