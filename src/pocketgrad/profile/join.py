"""Time, bytes, arithmetic and joules by operation, layer, phase and step. Pure.

The measured steps are cut into tiles: launches, and gaps by what the host did meanwhile. Every
table divides the tiles between its rows, so that its times add up to the steps and its joules to
the integral of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.profile import energy
from pocketgrad.profile.assemble import Timeline
from pocketgrad.profile.intervals import Division, Tiles, common, holes, union
from pocketgrad.profile.meters import Meter
from pocketgrad.trace.model import Span
from pocketgrad.trace.profile import (
    EnergyFigure,
    GroupRow,
    LaunchRow,
    OpRow,
    OpShare,
    StepRow,
    Work,
)

# What the host did while no launch ran, in the order in which it explains a gap.
CAUSES = ("load", "upload", "enqueue", "read", "wait")
OTHER = "other"  # the program around the steps, the driver, other processes
PHASES = ("input", "forward", "backward", "update")


@dataclass(frozen=True, eq=False)
class Tiled:
    """The measured steps as tiles. Rows: the launches, then the gaps by cause."""

    tiles: Tiles
    step: Array  # of each tile: its position among the measured steps
    launches: tuple[LaunchRow, ...]
    steps: int

    @property
    def rows(self) -> int:
        """Launches and causes of gaps."""
        return len(self.launches) + len(CAUSES) + 1

    def by_step(self, values: Array) -> Array:
        """Values of tiles summed: shape (steps, rows)."""
        found = np.zeros((self.steps, self.rows))
        np.add.at(found, (self.step, self.tiles.row), values)
        return found


def tile(timeline: Timeline, spans: Sequence[Span]) -> Tiled:
    """Cut the measured steps into launches and gaps; a gap is divided where its cause changes."""
    events, windows = timeline.events, timeline.windows
    numbers = np.array([step.number for step in timeline.measured], np.int64)
    mine = np.isin(events.step, numbers)
    starts, ends = events.start_ns[mine], events.end_ns[mine]
    parts = [(starts, ends, events.launch[mine])]
    if len(events):
        left = holes(windows, union(starts, ends))
        for index, cause in enumerate((*CAUSES, OTHER)):
            found = [s for s in spans if s.name == cause and s.track == "host"]
            edges = np.array([(s.start_ns, s.end_ns) for s in found], np.int64).reshape(-1, 2)
            here = left if cause == OTHER else common(left, union(edges[:, 0], edges[:, 1]))
            parts.append((*here, np.full(len(here[0]), len(timeline.launches) + index, np.int64)))
            left = holes(left, here)
    columns = (np.concatenate([part[i] for part in parts]) for i in range(3))
    tiles = Tiles.of(*columns)
    middle = (tiles.start_ns + tiles.end_ns) // 2
    step = np.clip(np.searchsorted(windows[1], middle, side="left"), 0, max(len(numbers) - 1, 0))
    return Tiled(tiles, step, timeline.launches, len(numbers))


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by key; ``weights`` and ``flops`` (rows, columns): what each gets of each row."""

    keys: tuple[tuple[str, ...], ...]
    weights: Array
    flops: Array


def table(tiled: Tiled, key: Callable[[LaunchRow, OpShare], tuple[str, ...]]) -> Table:
    """Group the ops of all launches by a key; gaps have their own."""
    index: dict[tuple[str, ...], int] = {}
    cells: list[tuple[int, int, float, int]] = []
    for number, launch in enumerate(tiled.launches):
        for share in launch.ops:
            column = index.setdefault(key(launch, share), len(index))
            cells.append((number, column, share.share, share.flops))
    for number, cause in enumerate((*CAUSES, OTHER)):
        gap = OpShare("gap", cause, "gap", 1.0, 0)
        row = LaunchRow("gap", "", (gap,), cause, "gap", Work.GAP, 0, 0)
        column = index.setdefault(key(row, gap), len(index))
        cells.append((len(tiled.launches) + number, column, 1.0, 0))
    weights, flops = np.zeros((2, tiled.rows, len(index)))
    for number, column, part, count in cells:
        weights[number, column] += part
        flops[number, column] += count
    return Table(tuple(index), weights, flops)


@dataclass(frozen=True, eq=False)
class Columns:
    """What a table's columns come to: times per step, counts and costs per step, joules."""

    table: Table
    step_ns: Array  # (steps, columns)
    launches: Array
    flops: Array
    nbytes: Array
    energy: Sequence[EnergyFigure | None]


def columns(tiled: Tiled, grouping: Table, meters: Sequence[Meter], energy_tiles: Tiles) -> Columns:
    """Sum up a table. ``energy_tiles``: those of the steps that samples cover."""
    lengths = (tiled.tiles.end_ns - tiled.tiles.start_ns).astype(np.float64)
    step_ns = tiled.by_step(lengths) @ grouping.weights
    often = tiled.by_step(np.ones(len(lengths))).sum(axis=0) / max(tiled.steps, 1)
    often[len(tiled.launches) :] = 0
    touched = (grouping.weights > 0).astype(np.float64)
    nbytes = np.array([*(ln.nbytes for ln in tiled.launches), *[0] * (len(CAUSES) + 1)])
    joules: Sequence[EnergyFigure | None] = [None] * len(grouping.keys)
    if meters and len(energy_tiles):
        joules = energy.divide(meters, Division(energy_tiles, grouping.weights))
    return Columns(
        grouping,
        step_ns,
        often @ touched,
        often @ grouping.flops,
        (often * nbytes) @ grouping.weights,
        joules,
    )


def op_rows(found: Columns, shared: Sequence[bool]) -> tuple[OpRow, ...]:
    """Operations, longest first; what never ran in a measured step is left out."""
    rows = [
        OpRow(
            key[0],
            key[1],
            key[2],
            Work(key[3]),
            round(found.launches[i]),
            round(found.flops[i]),
            round(found.nbytes[i]),
            found.step_ns[:, i],
            shared[i],
            found.energy[i],
        )
        for i, key in enumerate(found.table.keys)
        if found.step_ns[:, i].any()
    ]
    return tuple(sorted(rows, key=lambda row: -row.step_ns.sum()))


def group_rows(found: Columns) -> tuple[GroupRow, ...]:
    """Groups in the order of their keys; what never ran in a measured step is left out."""
    return tuple(
        GroupRow(
            key[0],
            round(found.launches[i]),
            round(found.flops[i]),
            round(found.nbytes[i]),
            found.step_ns[:, i],
            found.energy[i],
        )
        for i, key in enumerate(found.table.keys)
        if found.step_ns[:, i].any()
    )


def longest_first(rows: Sequence[GroupRow]) -> tuple[GroupRow, ...]:
    """By time in all steps."""
    return tuple(sorted(rows, key=lambda row: -row.step_ns.sum()))


def in_phase_order(rows: Sequence[GroupRow]) -> tuple[GroupRow, ...]:
    """As they run, gaps last."""
    order = {name: i for i, name in enumerate(PHASES)}
    return tuple(sorted(rows, key=lambda row: order.get(row.name, len(order))))


def step_rows(timeline: Timeline, meters: Sequence[Meter]) -> tuple[StepRow, ...]:
    """The steps with their joules."""
    if not meters or not timeline.steps:
        return timeline.steps
    starts = np.array([step.start_ns for step in timeline.steps], np.int64)
    ends = np.array([step.end_ns for step in timeline.steps], np.int64)
    each = [energy.windows(meter, starts, ends) for meter in meters]
    rows = []
    for i, step in enumerate(timeline.steps):
        figures = [f for f in (figures[i] for figures in each) if f is not None]
        known = energy.total(figures) if len(figures) == len(meters) else None
        rows.append(replace(step, energy=known))
    return tuple(rows)
