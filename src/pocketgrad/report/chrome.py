"""A profile as Chrome's trace event JSON: opens in ui.perfetto.dev and chrome://tracing.

Times are microseconds from the first step; what is left out of a long run says `slices`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isnan
from typing import Any

from pocketgrad.report.curves import Curve, cores, curve
from pocketgrad.report.slices import Slice, Track, tracks
from pocketgrad.trace.profile import Profile

MOST_VALUES = 5_000  # of one counter
_TRACKS, _COUNTERS = 1, 2  # process numbers: viewers group by them


def render(profile: Profile) -> bytes:
    """The whole file."""
    made, note = tracks(profile)
    origin = origin_ns(profile)
    events = [*_heads(made), *_slices(made, origin), *_counters(profile, origin)]
    metadata = {str(k): v for k, v in profile.metadata.items()}
    found = {
        "displayTimeUnit": "ns",
        "otherData": metadata | {"left out": note, "origin_ns": origin},
        "traceEvents": events,
    }
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()


def origin_ns(profile: Profile) -> int:
    """The zero of the time axis: the start of the first step, or of whatever came first."""
    if profile.steps:
        return profile.steps[0].start_ns
    return int(profile.events.start_ns[0]) if len(profile.events) else 0


def counters(profile: Profile) -> Iterator[Curve]:
    """What is shown as a counter: the cores' shares, then every other channel but their parts."""
    shown = cores(profile.trace)
    yield from shown
    yield from (
        curve(series)
        for name, series in profile.trace.series.items()
        if not (shown and name.startswith(("cpuidle/", "proc_stat/"))) and len(series)
    )


def _heads(made: list[Track]) -> Iterator[dict[str, Any]]:
    for pid, name in ((_TRACKS, "training"), (_COUNTERS, "samples")):
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    for tid, track in enumerate(made, start=1):
        head = {"ph": "M", "pid": _TRACKS, "tid": tid}
        yield head | {"name": "thread_name", "args": {"name": track.name}}
        yield head | {"name": "thread_sort_index", "args": {"sort_index": tid}}


def _slices(made: list[Track], origin: int) -> Iterator[dict[str, Any]]:
    for tid, track in enumerate(made, start=1):
        for piece in track.slices:
            at = {"pid": _TRACKS, "tid": tid, "ts": (piece.start_ns - origin) / 1e3}
            yield {
                "ph": "X",
                **at,
                "dur": (piece.end_ns - piece.start_ns) / 1e3,
                "name": piece.name,
                "cat": track.name,
                "args": dict(piece.args),
            }
            yield from _flows(piece, at)


def _flows(piece: Slice, at: dict[str, Any]) -> Iterator[dict[str, Any]]:
    arrow = {**at, "cat": "layer", "name": "layer to launch"}
    for flow in piece.flows_out:
        yield {"ph": "s", **arrow, "id": flow}
    if piece.flow_in:
        yield {"ph": "f", "bp": "e", **arrow, "id": piece.flow_in}


def _counters(profile: Profile, origin: int) -> Iterator[dict[str, Any]]:
    for line in counters(profile):
        thin = line.thinned(MOST_VALUES)
        for t, value in zip(thin.t_ns.tolist(), thin.values.tolist(), strict=True):
            if not isnan(value):
                yield {
                    "ph": "C",
                    "pid": _COUNTERS,
                    "ts": (t - origin) / 1e3,
                    "name": f"{line.name} [{line.unit}]",
                    "args": {line.unit: value},
                }
