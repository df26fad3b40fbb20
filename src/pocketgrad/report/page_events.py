"""What the page's timeline shows: steps, launches by queue, host spans; times from the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgrad.report.chrome import origin_ns
from pocketgrad.report.slices import host_lanes, keep_steps, launch_lanes
from pocketgrad.trace.model import Span
from pocketgrad.trace.profile import LaunchRow, Profile

__all__ = ["content", "origin_ns"]

MOST_LAUNCHES = 30_000  # about 600 kB
MOST_STEPS = 5_000


def content(profile: Profile, origin: int) -> dict[str, Any]:
    """Steps, the launches of the plan, and columns of events, by lane and then by start."""
    kept = keep_steps(profile, MOST_LAUNCHES)
    lanes = launch_lanes(profile, kept.steps)
    rows = [(e, lane) for lane, events in enumerate(lanes.values()) for e in events]
    rows.sort(key=lambda pair: pair[0].start_ns)
    starts = np.array([e.start_ns for e, _ in rows], np.int64) - origin
    spread = max(1, -(-len(profile.steps) // MOST_STEPS))
    # A step whose launches are shown is always there; of the others every so many.
    steps = [s for i, s in enumerate(profile.steps) if i % spread == 0 or s.number in kept.steps]
    notes = [kept.note] if kept.note else []
    if len(steps) < len(profile.steps):
        notes.append(f"Of {len(profile.steps)} steps, {len(steps)} are drawn.")
    return {
        "steps": [
            {
                "number": s.number,
                "start": s.start_ns - origin,
                "end": s.end_ns - origin,
                "busy": s.busy_ns,
                "discarded": s.discarded,
                "kept": s.number in kept.steps,
            }
            for s in steps
        ],
        "launches": [_launch(row) for row in profile.launches],
        "queues": list(lanes),
        "events": {
            "launch": [e.launch for e, _ in rows],
            "step": [e.step for e, _ in rows],
            "lane": [lane for _, lane in rows],
            "start": np.diff(starts, prepend=0).tolist(),  # differences take less text
            "dur": [e.end_ns - e.start_ns for e, _ in rows],
        },
        "phases": list(dict.fromkeys(row.phase for row in profile.launches)),
        "topOps": _top(profile),
        "timelineNote": " ".join(notes),
        **_host(profile, origin),
    }


def _launch(row: LaunchRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "kernel": row.kernel,
        "scope": row.scope,
        "phase": row.phase,
        "work": str(row.work),
        "flops": row.flops,
        "nbytes": row.nbytes,
        "ops": [{"op": op.op, "share": round(op.share, 4)} for op in row.ops],
        "main": main_op(row),
    }


def main_op(row: LaunchRow) -> str:
    """The operation that most of its time is counted for; it gives the colour."""
    return max(row.ops, key=lambda op: op.share).op if row.ops else row.name


def _top(profile: Profile) -> list[str]:
    """Operations by their time, longest first: the first have colours of their own."""
    spent: dict[str, float] = {}
    for row in profile.ops:
        if row.work != "gap":
            spent[row.op] = spent.get(row.op, 0.0) + row.median_ns
    return sorted(spent, key=lambda op: -spent[op])


def _host(profile: Profile, origin: int) -> dict[str, Any]:
    names: dict[str, int] = {}
    made = []
    for track, spans in host_lanes(profile.trace.spans).items():
        levels = _levels(spans)
        ends = [s.end_ns - origin for s in spans]
        made.append(
            {
                "name": track,
                "start": [s.start_ns - origin for s in spans],
                "end": ends,
                "reach": np.maximum.accumulate(ends).tolist(),  # rising, to search in
                "of": [names.setdefault(s.name, len(names)) for s in spans],
                "level": levels,
                "depth": max(levels) + 1,
            }
        )
    return {"host": made, "hostNames": list(names)}


def _levels(spans: list[Span]) -> list[int]:
    """How deep each span lies in others; parents come first."""
    levels: list[int] = []
    opened: list[int] = []
    for span in spans:
        while opened and opened[-1] <= span.start_ns:
            opened.pop()
        levels.append(len(opened))
        opened.append(span.end_ns)
    return levels
