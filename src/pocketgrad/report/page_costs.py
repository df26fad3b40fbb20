"""What the page says in numbers: tiles, breakdowns, roofline, energy, and the cost of profiling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.units import duration, si
from pocketgrad.report.page_events import main_op
from pocketgrad.trace.profile import (
    EnergyFigure,
    GroupRow,
    LaunchRow,
    OpRow,
    Overhead,
    Profile,
    Work,
)

NO_LAYER = "(no layer)"
_DRAWN = 0.01  # of the longest launch: shorter ones would only stretch the roofline's axes
_SHORT = 60  # characters of a reason that fit on a tile
_BEFORE_UNIT = re.compile(r"(?<=[\d±]) (?=[%\d]|[kMGTmµn]?(?:flop|[sJB])\b)")


def content(profile: Profile) -> dict[str, Any]:
    """All but the tiles."""
    return {
        "measures": _measures(profile),
        "groups": _groups(profile),
        "breakdownNote": _breakdown_note(profile),
        "roofline": _roofline(profile),
        "energy": _energy(profile),
        "cost": _cost(profile.overhead),
        "metrics": [
            {"name": m.name, "value": m.value, "unit": m.unit, "how": m.how, "paper": m.paper}
            for m in profile.metrics
        ],
    }


def tiles(profile: Profile) -> list[dict[str, Any]]:
    """The first things people ask, each with what it rests on."""
    steps = profile.measured_steps
    lengths = np.array([s.duration_ns for s in steps], float)
    made = []
    if len(lengths):
        low, middle, high = np.percentile(lengths, (25, 50, 75))
        made.append(
            _tile(
                "Step, median",
                duration(middle / 1e9),
                f"{len(steps)} steps; half of them {duration(low / 1e9)} to {duration(high / 1e9)}",
            )
        )
        batch = profile.metadata.get("batch")
        if isinstance(batch, int):
            made.append(_tile("Samples per second", si(batch / middle * 1e9), f"batch {batch}"))
        made.append(_ceiling_tile(profile, float(np.median([s.busy_ns for s in steps]))))
        made.append(_moving_tile(profile))
    made.append(_memory_tile(profile))
    made.append(_energy_tile(profile))
    made.append(_cost_tile(profile.overhead))
    return made


def _tile(label: str, value: str, note: str, absent: bool = False) -> dict[str, Any]:
    """A number stays on one line with its unit."""
    held = [_BEFORE_UNIT.sub("\u00a0", text) for text in (value, note)]
    return {"label": label, "value": held[0], "note": held[1], "absent": absent}


def _ceiling_tile(profile: Profile, busy_ns: float) -> dict[str, Any]:
    flops = sum(row.flops for row in profile.launches)
    rate = flops / busy_ns * 1e9 if busy_ns else 0.0
    best = next((c for c in profile.ceilings if c.unit == "flop/s"), None)
    note = f"{si(flops, 'flop')} a step"
    if best is not None:
        share = f"{100 * rate / best.per_s:.3g} % of the {si(best.per_s, best.unit)}"
        note = f"{share} measured here; {note}"
    return _tile("Arithmetic while launches run", si(rate, "flop/s"), note)


def _moving_tile(profile: Profile) -> dict[str, Any]:
    lengths = np.array([s.duration_ns for s in profile.measured_steps], float)
    moves = [r.step_ns for r in profile.ops if r.work in {Work.COPY, Work.LAYOUT}]
    gaps = np.array([s.gap_ns for s in profile.measured_steps], float)

    def share(spent: Array) -> str:
        return f"{100 * float(np.median(spent / lengths)):.2g} %"

    moved = np.sum(moves, axis=0) if moves else np.zeros(len(lengths))
    note = f"of the step's time; in {share(gaps)} no launch runs"
    return _tile("Copies and layout changes", share(moved), note)


def _memory_tile(profile: Profile) -> dict[str, Any]:
    if profile.memory is None:
        return _tile("Memory of the plan", "not available", _why(profile, "memory"), absent=True)
    peak, whole = profile.memory.peak_nbytes, profile.memory.allocated_nbytes
    return _tile("Memory of the plan", si(whole, "B"), f"allocated; {si(peak, 'B')} in use at most")


def _energy_tile(profile: Profile) -> dict[str, Any]:
    main = next((e for e in profile.energy if e.main and e.figure.joules is not None), None)
    steps = len(profile.measured_steps)
    if main is None or main.figure.joules is None or not steps:
        reason = _why(profile, "power")
        short = (
            reason if len(reason) < _SHORT else "no sensor was found; each reason is under Energy"
        )
        return _tile("Energy", "not available", short, absent=True)
    error = main.figure.error_j
    known = str(main.figure.label) + (f", ± {_joules(error / steps)}" if error is not None else "")
    return _tile("Energy, a step", _joules(main.figure.joules / steps), f"{main.scope}; {known}")


def _joules(value: float) -> str:
    for scale, prefix in ((1.0, ""), (1e3, "m"), (1e6, "µ")):
        if abs(value) * scale >= 0.9995:
            return si(value * scale, f"{prefix}J")
    return f"{value:.3g} J"


def _cost_tile(overhead: Overhead) -> dict[str, Any]:
    slower = overhead.slowdown
    sampling = f"sampling: {100 * overhead.of_one_core:.2g} % of one core"
    if slower is None:
        return _tile("Cost of profiling", "not measured", sampling, absent=True)
    return _tile("Cost of profiling", f"{100 * slower:+.2g} %", f"of the step; {sampling}")


def _why(profile: Profile, name: str) -> str:
    reasons = [a.reason for a in profile.absent if a.name.split("/")[0] == name]
    return reasons[0] if reasons else f"no {name} was recorded"


def _measures(profile: Profile) -> list[dict[str, Any]]:
    known = any(r.energy is not None and r.energy.joules is not None for r in profile.ops)
    return [
        {"key": "ns", "label": "time", "unit": "ns", "column": "median of a step"},
        {"key": "nbytes", "label": "bytes", "unit": "B", "column": "read and written"},
        {"key": "flops", "label": "arithmetic", "unit": "flop", "column": "a step"},
        {
            "key": "joules",
            "label": "joules",
            "unit": "J",
            "column": "a step",
            "absent": "" if known else _why(profile, "power"),
        },
    ]


def _groups(profile: Profile) -> list[dict[str, Any]]:
    steps = max(1, len(profile.measured_steps))
    shared = {r.scope for r in profile.ops if r.shared}
    layers = [_group_row(r, steps, r.name in shared) for r in profile.layers]
    return [
        {"key": "op", "label": "operation", "rows": _merged(profile.ops, lambda r: r.op, steps)},
        {"key": "layer", "label": "layer", "rows": layers},
        {
            "key": "phase",
            "label": "phase",
            "rows": [_group_row(r, steps, shared=False) for r in profile.phases],
        },
        {"key": "work", "label": "work", "rows": _merged(profile.ops, lambda r: r.work, steps)},
        {
            "key": "each",
            "label": "operation in layer",
            "rows": _merged(profile.ops, _full_name, steps),
        },
    ]


def _full_name(row: OpRow) -> str:
    return " · ".join(part for part in (row.op, row.scope, row.phase) if part)


def _merged(
    rows: Iterable[OpRow], name: Callable[[OpRow], str], steps: int
) -> list[dict[str, Any]]:
    together: dict[str, list[OpRow]] = {}
    for row in rows:
        together.setdefault(str(name(row)), []).append(row)
    made = []
    for label, part in together.items():
        figures = [r.energy for r in part if r.energy is not None]
        times = np.sum([r.step_ns for r in part], axis=0)
        made.append(
            {
                "name": label,
                **_times(times),
                "flops": sum(r.flops for r in part),
                "nbytes": sum(r.nbytes for r in part),
                "launches": sum(r.launches for r in part),
                "shared": any(r.shared for r in part),
                "work": str(part[0].work),
                **_joined_energy(figures, steps),
            }
        )
    return made


def _group_row(row: GroupRow, steps: int, shared: bool) -> dict[str, Any]:
    return {
        "name": row.name or NO_LAYER,
        **_times(row.step_ns),
        "flops": row.flops,
        "nbytes": row.nbytes,
        "launches": row.launches,
        "shared": shared,
        "work": "gap" if row.name in {"gap", "gaps"} else "",
        **_joined_energy([row.energy] if row.energy else [], steps),
    }


def _times(step_ns: Array) -> dict[str, float | None]:
    if not len(step_ns):
        return {"ns": 0, "low": None, "high": None}
    low, middle, high = np.percentile(step_ns, (25, 50, 75)).tolist()
    return {"ns": middle, "low": low, "high": high}


def _joined_energy(figures: Sequence[EnergyFigure], steps: int) -> dict[str, Any]:
    """Joules add up; so do errors, at worst: parts of one measurement err together."""
    joules = [f.joules for f in figures if f.joules is not None]
    errors = [f.error_j for f in figures if f.error_j is not None]
    return {
        "joules": sum(joules) / steps if joules else None,
        "error_j": sum(errors) / steps if errors and len(errors) == len(joules) else None,
        "known": ", ".join(dict.fromkeys(str(f.label) for f in figures)),
    }


def _breakdown_note(profile: Profile) -> str:
    count, left = len(profile.measured_steps), len(profile.steps) - len(profile.measured_steps)
    return (
        f"Medians over {count} steps; {left} warm-up steps are left out. Bytes and arithmetic come "
        "from the plan. Gaps are the time in which no launch ran."
    )


def _roofline(profile: Profile) -> dict[str, Any]:
    """A point for every launch: what was measured, not what was shared out."""
    best = {c.unit: c.per_s for c in profile.ceilings}
    medians = _launch_medians(profile)
    pairs = list(zip(profile.launches, medians, strict=True))
    points = [_point(row, ns, best) for row, ns in pairs if row.flops and row.nbytes and ns]
    longest = max(medians, default=0.0)
    for point in points:
        point["shown"] = point["ns"] >= _DRAWN * longest
    tiny = sum(1 for point in points if not point["shown"])
    without = sum(1 for row in profile.launches if not row.flops)
    note = "" if profile.ceilings else "The ceilings were not measured. "
    note += "A point is a launch, at its median time; "
    note += "bytes that stay in a cache can lift it over the slope."
    if without:
        note += f" {without} launches without arithmetic, such as copies, have no place here."
    if tiny:
        note += f" {tiny} launches shorter than {100 * _DRAWN:g} % of the longest"
        note += " are in the table only."
    return {
        "ceilings": [
            {"name": c.name, "per_s": c.per_s, "unit": c.unit, "how": c.how}
            for c in profile.ceilings
        ],
        "points": sorted(points, key=lambda p: -p["ns"]),
        "note": note,
        "absent": [["roofline", _why(profile, "launch times")]],
    }


def _launch_medians(profile: Profile) -> list[float]:
    """Of each launch of the plan, over the measured steps; 0 where it was not timed."""
    events = profile.events
    counted = np.isin(events.step, [s.number for s in profile.measured_steps])
    launch, length = events.launch[counted], (events.end_ns - events.start_ns)[counted]
    order = np.argsort(launch, kind="stable")
    edges = np.searchsorted(launch[order], np.arange(len(profile.launches) + 1)).tolist()
    parts = [length[order][a:b] for a, b in pairwise(edges)]
    return [float(np.median(part)) if len(part) else 0.0 for part in parts]


def _point(row: LaunchRow, ns: float, best: dict[str, float]) -> dict[str, Any]:
    x, y = row.flops / row.nbytes, row.flops / ns * 1e9
    limits = [best["flop/s"]] if "flop/s" in best else []
    limits += [best["B/s"] * x] if "B/s" in best else []
    return {
        "name": row.name,
        "op": main_op(row),
        "scope": row.scope,
        "phase": row.phase,
        "x": x,
        "y": y,
        "bps": row.nbytes / ns * 1e9,
        "ns": ns,
        "reached": y / min(limits) if limits else None,
    }


def _energy(profile: Profile) -> dict[str, Any]:
    steps = max(1, len(profile.measured_steps))
    return {
        "note": "",
        "rows": [
            {
                "channel": e.channel,
                "scope": e.scope,
                "main": e.main,
                "joules": e.figure.joules,
                "error_j": e.figure.error_j,
                "known": str(e.figure.label),
                "note": e.figure.note,
                "step_j": None if e.figure.joules is None else e.figure.joules / steps,
                "mean_w": e.figure.joules / e.window_ns * 1e9
                if e.figure.joules is not None and e.window_ns
                else None,
                "paper_j": e.paper_j,
            }
            for e in profile.energy
        ],
        "absent": [["energy", _why(profile, "power")]],
    }


def _cost(overhead: Overhead) -> dict[str, Any]:
    rows = [["sampling", f"{100 * overhead.of_one_core:.2g} % of one core"]]
    if overhead.polls:
        rows.append(["polls", f"{overhead.polls}, of which {overhead.late} came late"])
    if overhead.stretched > 1:
        longer = f"{overhead.stretched:.3g} times longer than asked"
        rows.append(["sampling periods", f"{longer}, to stay within the budget"])
    for label, values in (
        ("step without profiling", overhead.plain_step_ns),
        ("step with profiling", overhead.profiled_step_ns),
    ):
        if len(values):
            low, middle, high = np.percentile(values, (25, 50, 75)) / 1e9
            spread = f"half of {len(values)} steps {duration(low)} to {duration(high)}"
            rows.append([label, f"{duration(middle)} ({spread})"])
    if overhead.slowdown is not None:
        rows.append(["profiled steps are longer by", f"{100 * overhead.slowdown:+.2g} %"])
    return {"rows": rows, "note": ""}
