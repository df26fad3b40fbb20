"""Raw launches, joined operations and raw samples as tables: CSV, and Parquet where pyarrow is."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgrad.trace.profile import Profile

Columns = Mapping[str, Sequence[Any]]  # equal lengths; the unit ends a name


def launches(profile: Profile) -> Columns:
    """A row per launch and step, by start: when it was queued, submitted, started and ended."""
    events, rows = profile.events, [profile.launches[i] for i in profile.events.launch.tolist()]
    return {
        "step": events.step.tolist(),
        "launch": events.launch.tolist(),
        "name": [row.name for row in rows],
        "kernel": [row.kernel for row in rows],
        "layer": [row.scope for row in rows],
        "phase": [row.phase for row in rows],
        "work": [str(row.work) for row in rows],
        "queue": [row.queue for row in rows],
        "queued_ns": events.queued_ns.tolist(),
        "submitted_ns": events.submitted_ns.tolist(),
        "start_ns": events.start_ns.tolist(),
        "end_ns": events.end_ns.tolist(),
        "flops": [row.flops for row in rows],
        "nbytes": [row.nbytes for row in rows],
        "fused_ops": [len(row.ops) for row in rows],
    }


def ops(profile: Profile) -> Columns:
    """A row per operation, layer and phase, and one for the gaps; empty cells are not known."""
    rows, figures = profile.ops, [row.energy for row in profile.ops]
    quarters = [np.percentile(r.step_ns, (25, 75)) if len(r.step_ns) else None for r in rows]
    return {
        "op": [row.op for row in rows],
        "layer": [row.scope for row in rows],
        "phase": [row.phase for row in rows],
        "work": [str(row.work) for row in rows],
        "launches": [row.launches for row in rows],
        "median_ns": [row.median_ns if len(row.step_ns) else None for row in rows],
        "low_quarter_ns": [None if q is None else float(q[0]) for q in quarters],
        "high_quarter_ns": [None if q is None else float(q[1]) for q in quarters],
        "steps": [len(row.step_ns) for row in rows],
        "flops": [row.flops for row in rows],
        "nbytes": [row.nbytes for row in rows],
        "shared": [row.shared for row in rows],
        "energy_j": [None if f is None else f.joules for f in figures],
        "energy_error_j": [None if f is None else f.error_j for f in figures],
        "energy_known_by": [None if f is None else str(f.label) for f in figures],
    }


def samples(profile: Profile) -> Columns:
    """A row per stored sample, channel by channel: changes, and the last value seen."""
    made: dict[str, list[Any]] = {
        name: [] for name in ("channel", "scope", "unit", "kind", "basis", "t_ns", "value")
    }
    for series in profile.trace.series.values():
        channel, count = series.channel, len(series)
        facts = (channel.name, channel.scope, channel.unit, str(channel.kind), str(channel.basis))
        for name, fact in zip(made, facts, strict=False):  # the first five columns
            made[name] += [fact] * count
        made["t_ns"] += series.t_ns.tolist()
        made["value"] += series.values.tolist()
    return made


def csv_bytes(columns: Columns) -> bytes:
    """With a head line; None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def parquet_bytes(columns: Columns) -> bytes:
    """Compressed columns; ImportError without pyarrow."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(dict(columns)), sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content
