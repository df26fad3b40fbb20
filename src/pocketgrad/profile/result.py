"""A profile from a timeline, a trace and the plan's memory: where all is joined. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.profile import join
from pocketgrad.profile.absences import answers
from pocketgrad.profile.assemble import Timeline
from pocketgrad.profile.energy import windows
from pocketgrad.profile.intervals import Tiles
from pocketgrad.profile.meters import Meter, main_meters, meters
from pocketgrad.profile.metrics import metrics, paper_energy_j
from pocketgrad.trace.model import Absent, Scalar, Trace
from pocketgrad.trace.profile import (
    Ceiling,
    EnergyFigure,
    EnergyTotal,
    LaunchRow,
    MemoryCurve,
    OpShare,
    Overhead,
    Profile,
    Work,
)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was observed, before anything is computed from it."""

    timeline: Timeline
    trace: Trace
    batch: int
    period_ns: int
    memory: MemoryCurve | None = None
    overhead: Overhead = field(default_factory=Overhead)
    ceilings: tuple[Ceiling, ...] = ()
    absent: tuple[Absent, ...] = ()
    warnings: tuple[str, ...] = ()


def profile(found: Measured, metadata: Mapping[str, Scalar]) -> Profile:
    """Everything that follows from what was observed."""
    timeline, trace = found.timeline, found.trace
    everything = meters(trace)
    covered = _covered(timeline, everything)
    main = [m for m in main_meters(everything) if covered.get(m.channel.name)]
    tiled = join.tile(timeline, trace.spans)
    tiles = _tiles_of(tiled, timeline, main)

    def columns(grouping: join.Table) -> join.Columns:
        return join.columns(tiled, grouping, main, tiles)

    by_op = join.table(tiled, _op_key)
    shared = _shared(tiled.launches, by_op)
    ops = join.op_rows(columns(by_op), shared) if len(timeline.events) else ()
    layers = join.group_rows(columns(join.table(tiled, _layer_key)))
    phases = join.group_rows(columns(join.table(tiled, lambda _, op: (op.phase,))))
    energy = _totals(timeline, everything, covered, main, found.period_ns)
    return Profile(
        metadata,
        timeline.launches,
        timeline.events,
        join.step_rows(timeline, main),
        ops,
        join.longest_first(layers),
        join.in_phase_order(phases),
        trace,
        timeline.clocks,
        found.memory,
        found.ceilings,
        energy,
        metrics(trace, timeline.measured, ops, found.batch, found.period_ns),
        found.overhead,
        (*answers(trace), *found.absent, *trace.absent),
        (*found.warnings, *_energy_warnings(timeline, everything, covered)),
    )


def _op_key(launch: LaunchRow, op: OpShare) -> tuple[str, ...]:
    return (op.op, op.scope, op.phase, launch.work.value)


def _layer_key(launch: LaunchRow, op: OpShare) -> tuple[str, ...]:
    return ("gap" if launch.work is Work.GAP else op.scope or "(no layer)",)


def _shared(launches: Sequence[LaunchRow], grouping: join.Table) -> list[bool]:
    """Whether some of a column's time is a share of a launch with other operations."""
    fused = np.array([launch.fused for launch in launches], bool)
    touched = grouping.weights[: len(launches)] > 0
    return [bool(found) for found in (touched & fused[:, None]).any(axis=0)]


def _covered(timeline: Timeline, found: Sequence[Meter]) -> dict[str, list[int]]:
    """For each meter the positions of the measured steps that its samples cover."""
    return {
        m.channel.name: [
            i for i, step in enumerate(timeline.measured) if m.covers(step.start_ns, step.end_ns)
        ]
        for m in found
    }


def _tiles_of(tiled: join.Tiled, timeline: Timeline, main: Sequence[Meter]) -> Tiles:
    """The tiles of the steps that all main meters cover."""
    steps = [
        i
        for i, step in enumerate(timeline.measured)
        if all(m.covers(step.start_ns, step.end_ns) for m in main)
    ]
    keep = np.isin(tiled.step, steps) if main else np.zeros(len(tiled.tiles), bool)
    tiles = tiled.tiles
    return Tiles(tiles.start_ns[keep], tiles.end_ns[keep], tiles.row[keep])


def _totals(
    timeline: Timeline,
    found: Sequence[Meter],
    covered: Mapping[str, Sequence[int]],
    main: Sequence[Meter],
    period_ns: int,
) -> tuple[EnergyTotal, ...]:
    measured = timeline.measured
    totals = []
    for m in found:
        steps = [measured[i] for i in covered[m.channel.name]]
        if not steps:
            continue
        start, end = steps[0].start_ns, steps[-1].end_ns
        joules = float(
            m.between(_ns(s.start_ns for s in steps), _ns(s.end_ns for s in steps)).sum()
        )
        (whole,) = windows(m, _ns([start]), _ns([end]))
        assert whole is not None
        totals.append(
            EnergyTotal(
                m.channel.name,
                m.channel.scope,
                m in main,
                EnergyFigure(joules, whole.label, whole.error_j, whole.note),
                sum(step.duration_ns for step in steps),
                paper_energy_j(m, start, end, period_ns),
                len(steps),
            )
        )
    return tuple(sorted(totals, key=lambda t: (not t.main, t.channel)))


def _ns(values: Iterable[int]) -> Array:
    return np.array(list(values), np.int64)


def _energy_warnings(
    timeline: Timeline, found: Sequence[Meter], covered: Mapping[str, Sequence[int]]
) -> list[str]:
    steps = len(timeline.measured)
    return [
        f"the samples of {m.channel.name} cover {len(covered[m.channel.name])} of {steps} measured "
        "steps; its joules are of these alone"
        for m in found
        if len(covered[m.channel.name]) < steps
    ]
