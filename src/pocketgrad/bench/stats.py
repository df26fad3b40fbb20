"""Statistics of raw values: medians, spread, and how sure a ratio of medians is.

Pure functions of what was stored; nothing here measures.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """The middle and the quartiles of some values."""

    median: float
    low: float
    high: float
    count: int

    @property
    def relative(self) -> float:
        """The distance of the quartiles, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians and the interval that holds it with 95 % confidence."""

    value: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value; of one, all three are that value."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high, len(values))


def ratio(slow: Sequence[float], fast: Sequence[float], seed: int = 0) -> Ratio:
    """median(slow) / median(fast), with its interval by resampling both (a fixed seed)."""
    rng = np.random.default_rng(seed)
    medians = [np.median(_resampled(np.asarray(v, float), rng), axis=1) for v in (slow, fast)]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians[0] / medians[1], (tail, 1 - tail))
    value = statistics.median(slow) / statistics.median(fast)
    return Ratio(value, min(float(low), value), max(float(high), value))


def _resampled(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return values[rng.integers(0, len(values), (RESAMPLES, len(values)))]


def geometric_mean(values: Sequence[float]) -> float:
    """Of ratios, the mean that treats 2× and ½× alike."""
    return statistics.geometric_mean(values)
