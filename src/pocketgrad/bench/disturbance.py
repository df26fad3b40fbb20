"""Signs that times were disturbed, each with its likely cause and what to do about it.

Judged from stored blocks alone; a finding does not change a result, it stands beside it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pocketgrad.bench.runner import Block
from pocketgrad.bench.stats import spread

FEW = 6  # with fewer blocks nothing can be told
APART = (1.5, 2.6)  # half speed, give or take
TIGHT = 0.2  # spread within one of two groups, of its median
DRIFT = 0.1  # of the median, from the first third of a run to the last
WIDE = 0.2  # spread of all, of the median
BUSY = 0.15  # cores


@dataclass(frozen=True)
class Finding:
    """What was seen, why probably, and what helps."""

    kind: str
    text: str
    advice: str


def findings(blocks: Sequence[Block], common: Sequence[float] = ()) -> list[Finding]:
    """Of one participant; ``common`` holds what slowed all of them, a factor per round."""
    found = [*_load(blocks), *_idlers(blocks)]
    if len(blocks) >= FEW:
        times = freed([b.step_s for b in blocks], common)
        groups = two_groups(times)
        if groups:
            found.append(_half_speed(blocks, times, groups))
        else:
            found += _drift(times) or _wide(times)
    return found


def freed(times: Sequence[float], common: Sequence[float]) -> list[float]:
    """Times as they would be at the machine's usual speed."""
    return [t / f for t, f in zip(times, common, strict=False)] if common else list(times)


def two_groups(times: Sequence[float]) -> tuple[float, float] | None:
    """The medians of a fast and a slow group, where values fall into two tight ones far apart."""
    ordered = sorted(times)
    best: tuple[float, float] | None = None
    widest = 1.0
    for i in range(2, len(ordered) - 1):  # at least two in each
        gap = ordered[i] / ordered[i - 1]
        fast, slow = spread(ordered[:i]), spread(ordered[i:])
        apart = APART[0] <= slow.median / fast.median <= APART[1]
        if gap > widest and apart and max(fast.relative, slow.relative) <= TIGHT:
            widest, best = gap, (fast.median, slow.median)
    return best


def _half_speed(
    blocks: Sequence[Block], times: Sequence[float], groups: tuple[float, float]
) -> Finding:
    fast, slow = groups
    limit = (fast * slow) ** 0.5
    late = [b for b, t in zip(blocks, times, strict=True) if t > limit]
    cores = statistics.median(b.cpu_ns / b.ns for b in late)
    text = f"{len(late)} of {len(blocks)} blocks took {slow / fast:.2g} times as long as the others"
    if cores > 1.5:
        return Finding(
            "half speed",
            f"{text} while {cores:.1f} cores were busy: its threads wait for each other, spinning",
            "measure again with more --rounds; fewer and larger launches make it rarer",
        )
    return Finding(
        "half speed",
        f"{text} with {cores:.1f} cores busy: some ran on fewer cores",
        "stop other programs, look at cpusets and at the governor, and measure again",
    )


def _drift(times: Sequence[float]) -> list[Finding]:
    third = len(times) // 3
    change = statistics.median(times[-third:]) / statistics.median(times[:third]) - 1
    pairs = [(a, b) for i, a in enumerate(times) for b in times[i + 1 :]]
    tau = sum((b > a) - (b < a) for a, b in pairs) / len(pairs)
    if abs(change) < DRIFT or abs(tau) < 0.5 or (change > 0) != (tau > 0):
        return []
    how = "slower" if change > 0 else "faster"
    return [
        Finding(
            "drift",
            f"steps became {abs(change):.0%} {how} from the first third of the blocks to the last",
            "heat or a governor: let the device cool or warm up, or measure for longer",
        )
    ]


def _wide(times: Sequence[float]) -> list[Finding]:
    width = spread(times).relative
    if width < WIDE:
        return []
    return [
        Finding(
            "wide spread",
            f"the quartiles are {width:.0%} of the median apart",
            "measure for longer (--seconds), with nothing else running",
        )
    ]


def _load(blocks: Sequence[Block]) -> list[Finding]:
    found = []
    known = [b for b in blocks if b.others is not None and b.stolen is not None]
    busy = [b for b in known if (b.others or 0) > BUSY]
    if known and len(busy) > len(known) / 10:
        worst = max(b.others or 0 for b in busy)
        found.append(
            Finding(
                "other load",
                f"other programs used up to {worst:.1f} cores during {len(busy)} of "
                f"{len(known)} blocks",
                "stop them and measure again",
            )
        )
    stolen = [b for b in known if (b.stolen or 0) > BUSY]
    if known and len(stolen) > len(known) / 10:
        found.append(
            Finding(
                "stolen time",
                f"the host of this virtual machine took CPU time in {len(stolen)} of "
                f"{len(known)} blocks",
                "measure when the host is quiet, or on a machine of your own",
            )
        )
    return found


def _idlers(blocks: Sequence[Block]) -> list[Finding]:
    worst: dict[str, list[float]] = {}
    for block in blocks:
        for name, used in block.idlers.items():
            if used > BUSY:
                worst.setdefault(name, []).append(used)
    return [
        Finding(
            "not idle",
            f"{name} used up to {max(used):.1f} cores in {len(used)} of {len(blocks)} blocks, "
            "while it should have waited",
            "compare with fewer peers at once",
        )
        for name, used in worst.items()
        if len(used) > len(blocks) / 10
    ]
