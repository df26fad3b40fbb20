"""Counters as they grow: without their wraps and restarts. Whoever reads a trace needs it."""

from __future__ import annotations

import numpy as np

from pocketgrad.base.dtypes import Array


def unwrapped(values: Array, wraps_at: float | None) -> Array:
    """A counter without its wraps, from 0 on.

    A step back is a wrap if that leaves a small step; else the counter restarted or went back
    for a moment, and the step counts as nothing.
    """
    steps = np.diff(values)
    back = steps < 0
    if wraps_at:
        around = steps + wraps_at
        steps = np.where(back & (around >= 0) & (around < wraps_at / 2), around, steps)
    else:
        # A reading that comes back up later must not count twice: only new maxima do.
        steps = np.diff(np.maximum.accumulate(values))
    return np.concatenate(([0.0], np.cumsum(np.maximum(steps, 0.0))))
