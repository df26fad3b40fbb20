"""Whether participants compute the same thing, judged by their losses; no times are looked at.

Every run of steps begins from the same weights and ends on the first batch, so the loss after n
steps has moved from the loss of step 1 by what n - 1 updates did. One who left out a part of the
work is off by a large share of that movement; rounding, which training amplifies, is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FIRST_STEPS = (1, 3, 5)  # with two batches in turn, all see the first one


@dataclass(frozen=True)
class Rule:
    """How far a loss may be off, at the first step and later."""

    first: float  # of the loss
    later: float  # of the loss, whatever the movement
    share: float  # of the movement; infinite where a precision is too coarse to judge by it


RULES: Mapping[str, Rule] = {
    # Sums in another order round by 1e-6, Winograd's convolutions by 1e-5, layer after layer.
    "float32": Rule(first=2e-4, later=0.05, share=0.25),
    # Eight bits of a product: a percent in a deep network.
    "bfloat16": Rule(first=0.02, later=0.1, share=math.inf),
}
FLOOR = 1e-5  # of the loss: below it a movement is rounding, and proves nothing


def disagreement(
    found: Sequence[float], wanted: Sequence[float], at: Sequence[int], precision: str
) -> str:
    """What is wrong with losses at steps of these numbers, the first being 1; empty if nothing."""
    rule = RULES[precision]
    for n, a, b in zip(at, found, wanted, strict=True):
        off, size = abs(a - b), max(abs(wanted[0]), 1e-6)
        moved = abs(b - wanted[0])
        allowed = size * rule.first
        if n > 1:
            allowed = min(size * rule.later, max(moved * rule.share, allowed, size * FLOOR))
        if not off <= allowed:  # also where one of them is no number
            return (
                f"the loss of step {n} is {a:.6g}, {b:.6g} is expected: off by {off:.2g}, allowed "
                f"{allowed:.2g} (training moved it by {moved:.2g})"
            )
    return ""


def weakness(wanted: Sequence[float], precision: str) -> str:
    """Why losses could not tell one who skips work; empty where they can."""
    moved = max(abs(b - wanted[0]) for b in wanted)
    size = abs(wanted[0])
    if moved <= size * RULES[precision].first:
        return (
            f"training moved the loss of the first batch by {moved:.2g} only, so that skipped work "
            "would go unnoticed; choose a larger --lr"
        )
    return ""
