"""A profile as tracks of nested slices with flows between them, bounded in size: what viewers take.

Rule when there is too much: a few steps, evenly spread, keep their launches; the others are one
slice each, and of very many steps neighbours are one slice. Sums in slices and tables count all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pocketgrad.trace.model import Scalar, Span
from pocketgrad.trace.profile import Event, LaunchRow, Profile, StepRow

MOST_LAUNCHES = 60_000  # about 15 MB as Chrome JSON
MOST_STEPS = 20_000
MOST_SPANS = 40_000


@dataclass(slots=True)
class Slice:
    """A stretch of time on a track. ``flows_out`` begin here, ``flow_in`` ends here."""

    name: str
    start_ns: int
    end_ns: int
    args: Mapping[str, Scalar] = field(default_factory=dict)
    flows_out: list[int] = field(default_factory=list)
    flow_in: int = 0


@dataclass(frozen=True, slots=True)
class Track:
    """Slices that nest: each begins after its parent and ends before it; parents come first."""

    name: str
    slices: Sequence[Slice]


@dataclass(frozen=True, slots=True)
class Kept:
    """Which steps show their launches, and what to say about it (nothing when all do)."""

    steps: frozenset[int]
    note: str


def keep_steps(profile: Profile, most: int) -> Kept:
    """Steps whose launches fit into ``most``, evenly spread; always one at least."""
    numbers, counts = np.unique(profile.events.step, return_counts=True)
    total = int(counts.sum())
    if total <= most:
        return Kept(frozenset(numbers.tolist()), "")
    every = -(-total // most)
    while int(counts[::every].sum()) > most and every < len(numbers):
        every += 1
    kept = frozenset(numbers[::every].tolist())
    return Kept(
        kept,
        f"{len(numbers)} steps have {total} launches; only every {every}th step "
        f"({len(kept)} of them) shows its launches here. Sums and tables count all.",
    )


def tracks(profile: Profile, most_launches: int = MOST_LAUNCHES) -> tuple[list[Track], str]:
    """All tracks in the order to show them, and what was left out."""
    kept = keep_steps(profile, most_launches)
    made = [Track("steps", list(_steps(profile.steps)))]
    lanes = launch_lanes(profile, kept.steps)
    numbers = iter(range(1, 1 << 40))
    for name, events in lanes.items():
        launches, layers = _queue(profile.launches, events, numbers)
        made += [Track(f"{name} by layer", layers), Track(name, launches)]
    made += [Track(name, _host(spans)) for name, spans in host_lanes(profile.trace.spans).items()]
    return [track for track in made if track.slices], kept.note


def launch_lanes(profile: Profile, steps: frozenset[int]) -> dict[str, list[Event]]:
    """Events of some steps by queue; what overlaps within a queue goes to a lane beside it."""
    chosen = np.isin(profile.events.step, list(steps))
    columns = [getattr(profile.events, n)[chosen].tolist() for n in Event.__slots__]
    events = sorted(
        (Event(*row) for row in zip(*columns, strict=True)), key=lambda e: (e.start_ns, e.end_ns)
    )
    lanes: dict[str, list[Event]] = {}
    for event in events:
        queue = profile.launches[event.launch].queue
        lane, number = queue, 1
        while lane in lanes and lanes[lane][-1].end_ns > event.start_ns:
            number += 1
            lane = f"{queue} ({number})"
        lanes.setdefault(lane, []).append(event)
    return dict(sorted(lanes.items()))


def host_lanes(spans: Sequence[Span]) -> dict[str, list[Span]]:
    """Host spans by track, parents first; a span that would cross another goes to a lane beside."""
    lanes: dict[str, list[Span]] = {}
    open_until: dict[str, list[int]] = {}
    longest = sorted(spans, key=lambda s: s.duration_ns, reverse=True)[:MOST_SPANS]
    for span in sorted(longest, key=lambda s: (s.start_ns, -s.end_ns)):
        lane, number = span.track, 1
        while not _fits(open_until.setdefault(lane, []), span):
            number += 1
            lane = f"{span.track} ({number})"
        open_until[lane].append(span.end_ns)
        lanes.setdefault(lane, []).append(span)
    return dict(sorted(lanes.items()))


def _fits(open_until: list[int], span: Span) -> bool:
    while open_until and open_until[-1] <= span.start_ns:
        open_until.pop()
    return not open_until or span.end_ns <= open_until[-1]


def _steps(steps: Sequence[StepRow]) -> Iterator[Slice]:
    together = -(-len(steps) // MOST_STEPS) if steps else 1
    for at in range(0, len(steps), together):
        part = steps[at : at + together]
        first, last = part[0], part[-1]
        name = f"step {first.number}" if together == 1 else f"steps {first.number}–{last.number}"
        args: dict[str, Scalar] = {
            "busy_ns": sum(s.busy_ns for s in part),
            "discarded": first.discarded,
        }
        joules = [s.energy.joules for s in part if s.energy and s.energy.joules is not None]
        if joules:
            args["energy_j"] = sum(joules)
        yield Slice(name, first.start_ns, last.end_ns, args)


def _queue(
    rows: Sequence[LaunchRow], events: Sequence[Event], numbers: Iterator[int]
) -> tuple[list[Slice], list[Slice]]:
    """Launches, with the shares of fused operations in them; and phases, with layers in them."""
    launches: list[Slice] = []
    layers: list[Slice] = []
    phase: Slice | None = None
    layer: Slice | None = None
    last: tuple[object, ...] = (None, None, None)
    for event in events:
        row = rows[event.launch]
        flow = next(numbers)
        now = (event.step, row.phase, row.scope)
        if phase is None or now[:2] != last[:2]:
            phase = Slice(row.phase, event.start_ns, event.end_ns, {"step": event.step})
            layers.append(phase)
        if layer is None or now != last:
            layer = Slice(row.scope or "(no layer)", event.start_ns, event.end_ns)
            layers.append(layer)
        phase.end_ns = layer.end_ns = max(phase.end_ns, event.end_ns)
        layer.flows_out.append(flow)
        last = now
        launches += _launch(row, event, flow)
    return launches, layers


def _launch(row: LaunchRow, event: Event, flow: int) -> Iterator[Slice]:
    yield Slice(
        row.name,
        event.start_ns,
        event.end_ns,
        {
            "step": event.step,
            "kernel": row.kernel,
            "layer": row.scope,
            "phase": row.phase,
            "work": str(row.work),
            "flops": row.flops,
            "bytes": row.nbytes,
            "waited_ns": event.start_ns - event.queued_ns,
        },
        flow_in=flow,
    )
    if not row.fused:
        return
    length, done = event.end_ns - event.start_ns, 0.0
    for op in row.ops:
        start = event.start_ns + round(length * min(done, 1.0))
        done += op.share
        end = event.start_ns + round(length * min(done, 1.0))
        args: dict[str, Scalar] = {"share": op.share, "known by": "share by cost, not measured"}
        if end > start:
            yield Slice(op.op, start, end, args)


def _host(spans: Sequence[Span]) -> list[Slice]:
    return [Slice(s.name, s.start_ns, s.end_ns, s.args) for s in spans]
