"""Timelines and traces made by hand: numbers of a round size, no clock, no device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pocketgrad.profile.assemble import Timeline
from pocketgrad.profile.result import Measured, profile
from pocketgrad.trace.model import Channel, Kind, Series, Span, Trace
from pocketgrad.trace.profile import (
    EnergyFigure,
    Events,
    LaunchRow,
    OpShare,
    Profile,
    StepRow,
    Work,
)

MS = 1_000_000
S = 1000 * MS


def launch(
    name: str,
    scope: str = "layer",
    phase: str = "forward",
    work: Work = Work.COMPUTE,
    ops: Sequence[tuple[str, float]] = (),
) -> LaunchRow:
    """A launch of 1000 operations on 100 bytes; ``ops`` with their shares if it is fused."""
    shares = tuple(
        OpShare(op, scope, phase, share, round(1000 * share)) for op, share in ops or [(name, 1.0)]
    )
    return LaunchRow(name, "loops", shares, scope, phase, work, 1000, 100)


def timeline(
    launches: Sequence[LaunchRow],
    plan: Sequence[tuple[int, int, int]],
    steps: int,
    period_ns: int,
    start_ns: int = 0,
    discarded: int = 0,
) -> Timeline:
    """Steps one after another; ``plan`` has (launch, start, end) within each."""
    rows = [
        (number, k, start_ns + k * period_ns + low, start_ns + k * period_ns + high)
        for k in range(steps)
        for number, low, high in plan
    ]
    table = np.array(rows, np.int64).reshape(-1, 4)
    busy = sum(high - low for _, low, high in plan)
    return Timeline(
        tuple(launches),
        Events(table[:, 0], table[:, 1], table[:, 2], table[:, 2], table[:, 2], table[:, 3]),
        tuple(
            StepRow(
                k, start_ns + k * period_ns, start_ns + (k + 1) * period_ns, busy, k < discarded
            )
            for k in range(steps)
        ),
        {},
    )


def series(
    name: str,
    t_ns: Any,  # numbers, as a list or an array
    values: Any,
    kind: Kind = Kind.CUMULATIVE,
    quantity: str = "energy",
    whole: bool = True,
    within: str = "",
    wraps_at: float | None = None,
) -> Series:
    """A channel with its samples."""
    channel = Channel(
        name, quantity, kind, name, f"/sys/{name}", whole=whole, within=within, wraps_at=wraps_at
    )
    return Series(channel, np.array(t_ns, np.int64), np.array(values, np.float64))


def trace(*found: Series, spans: Sequence[Span] = ()) -> Trace:
    return Trace(tuple(spans), {s.channel.name: s for s in found})


def figure(row: Any) -> EnergyFigure:
    """The joules of an operation, layer, phase or step, which must have some."""
    found: EnergyFigure | None = row.energy
    assert found is not None
    assert found.joules is not None
    return found


def joules(rows: Iterable[Any]) -> float:
    """Their sum."""
    return sum(figure(row).joules or 0.0 for row in rows)


def profiled(ran: Timeline, sampled: Trace, batch: int = 2, period_ns: int = 10 * MS) -> Profile:
    return profile(Measured(ran, sampled, batch, period_ns), {"model": "made", "batch": batch})
