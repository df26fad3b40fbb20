"""What slows all participants at once: the machine's own speed, round by round.

A factor per round, of which the times can be freed before one participant is judged alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pocketgrad.bench.disturbance import Finding

FEWEST = 3  # participants; of two nobody can say which one changed
UNSTEADY = 0.15  # quartiles of the factors apart


def factors(runs: Sequence[Sequence[float]]) -> list[float]:
    """By round, the middle of all participants' times over their own medians; 1 if unknown."""
    rounds = max((len(run) for run in runs), default=0)
    if len(runs) < FEWEST:
        return [1.0] * rounds
    scaled = [[t / statistics.median(run) for t in run] for run in runs if run]
    return [statistics.median([run[i] for run in scaled if i < len(run)]) for i in range(rounds)]


def unsteadiness(common: Sequence[float]) -> list[Finding]:
    """Whether the machine changed its speed under everyone."""
    if len(common) < FEWEST or not statistics.median(common):
        return []
    low, _, high = statistics.quantiles(common, n=4, method="inclusive")
    if (high - low) / statistics.median(common) < UNSTEADY:
        return []
    slow = sum(f > (low + high) / 2 for f in common)
    return [
        Finding(
            "machine speed",
            f"all participants were {max(common) / min(common):.1f} times as slow in some rounds "
            f"as in others ({slow} of {len(common)} slow)",
            "the clock or the host of a virtual machine: medians of paired rounds are the better "
            "numbers; measure again when it is steady",
        )
    ]
