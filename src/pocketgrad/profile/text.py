"""A profile as text for a terminal: what took the time, what was reached, what is not known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.units import duration, si
from pocketgrad.trace.profile import EnergyFigure, GroupRow, Label, OpRow, Profile, Work

TOP = 12


def summary(profile: Profile, top: int = TOP) -> str:
    """Phases, top operations, ceilings, utilisation, memory, energy, absences and the cost."""
    parts = [
        heading(profile),
        *_table("phases", phase_cells(profile), "lrrrrrl"),
        *_table(f"the {min(top, len(profile.ops))} operations that took longest",
                op_cells(profile, top), "lllrrrrl"),
        *findings(profile),
    ]  # fmt: skip
    return "\n".join(parts)


def heading(profile: Profile) -> str:
    """Which model, device and steps."""
    about = profile.metadata
    model = about.get("model", "training")
    steps = len(profile.measured_steps)
    return (
        f"{model}, batch {about.get('batch')}, on {about.get('device')} "
        f"({about.get('device_name')}): {steps} steps measured, "
        f"{len(profile.steps) - steps} warm-ups left out, times from {about.get('timing')}"
    )


def phase_cells(profile: Profile) -> list[tuple[str, ...]]:
    """Rows of the table of phases, its head first."""
    head = ("phase", "time/step", "share", "launches", "flop/s", "B/s", "energy/step")
    return [head, *(_group(profile, row) for row in profile.phases)]


def op_cells(profile: Profile, top: int) -> list[tuple[str, ...]]:
    """Rows of the table of operations, its head first; '*' marks times divided by cost."""
    head = ("operation", "layer", "phase", "time/step", "share", "flop/s", "B/s", "energy/step")
    return [head, *(_op(profile, row) for row in profile.ops[:top])]


def _group(profile: Profile, row: GroupRow) -> tuple[str, ...]:
    return (
        row.name,
        duration(row.median_ns / 1e9),
        _share(profile, row.step_ns),
        str(row.launches) if row.flops or row.nbytes else "-",
        *_rates(row),
        joules(profile, row.energy),
    )


def _op(profile: Profile, row: OpRow) -> tuple[str, ...]:
    return (
        f"{row.op}{'*' if row.shared else ''}",
        row.scope,
        row.phase if row.work in (Work.COMPUTE, Work.GAP) else f"{row.phase} ({row.work})",
        duration(row.median_ns / 1e9),
        _share(profile, row.step_ns),
        *_rates(row),
        joules(profile, row.energy),
    )


def _rates(row: OpRow | GroupRow) -> tuple[str, str]:
    spent = row.median_ns / 1e9
    if not spent:
        return "-", "-"
    return (
        si(row.flops / spent) if row.flops else "-",
        si(row.nbytes / spent) if row.nbytes else "-",
    )


def _share(profile: Profile, step_ns: Array) -> str:
    whole = sum(step.duration_ns for step in profile.measured_steps)
    return f"{100 * float(np.sum(step_ns)) / whole:.1f} %" if whole else "-"


def joules(profile: Profile, figure: EnergyFigure | None) -> str:
    """A figure per step with its label; '-' where there is no sensor."""
    if figure is None or figure.joules is None:
        return "-"
    if figure.label is Label.UNRESOLVABLE:
        return "not resolvable"
    steps = max((t.steps for t in profile.energy if t.main), default=0) or 1
    shown = _j(figure.joules / steps)
    error = f" ± {_j((figure.error_j or 0) / steps)}" if figure.error_j else ""
    return f"{shown}{error} {figure.label}"


def _j(value: float) -> str:
    for factor, unit in ((1, "J"), (1e3, "mJ"), (1e6, "µJ")):
        if abs(value) * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} nJ"


def findings(profile: Profile) -> list[str]:
    """Lines about the whole."""
    lines = [""]
    paper = {True: " (paper)", False: ""}
    for metric in profile.metrics:
        if "idle-state" in metric.name or (metric.name.startswith("cpu") and not metric.paper):
            continue
        lines.append(
            f"{metric.name}{paper[metric.paper]}: {_value(metric.value, metric.unit, metric.how)}"
        )
    lines += _reached(profile)
    if profile.memory is not None:
        memory = profile.memory
        lines.append(
            f"memory of the plan: {si(memory.allocated_nbytes, 'B')} allocated, at most "
            f"{si(memory.peak_nbytes, 'B')} in use at once"
        )
    lines += _energy(profile)
    lines += [f"{a.name}: not available: {a.reason}" for a in profile.absent if a.name in _FIRST]
    lines += _cost(profile)
    lines += [f"note: {warning}" for warning in profile.warnings]
    return lines


_FIRST = ("launch times", "power", "temperature", "GPU", "CPU frequency")


def _value(value: float | None, unit: str, how: str) -> str:
    if value is None:
        return f"not available: {how}"
    if unit == "%":
        return f"{value:.1f} %"
    if unit == "s":
        return duration(value)
    return si(value, unit) if unit == "B" else f"{value:,.4g} {unit}"


def _reached(profile: Profile) -> list[str]:
    spent = sum(float(np.median(row.step_ns)) for row in profile.phases if row.name != "gap") / 1e9
    flops, nbytes = (sum(getattr(row, name) for row in profile.ops) for name in ("flops", "nbytes"))
    found = []
    for ceiling in profile.ceilings:
        rate = (flops if ceiling.name == "arithmetic" else nbytes) / spent if spent else 0.0
        found.append(
            f"{ceiling.name}: {si(rate, ceiling.unit)} of {si(ceiling.per_s, ceiling.unit)} "
            f"({100 * rate / ceiling.per_s:.1f} %) while launches ran; the ceiling is {ceiling.how}"
        )
    return found


def _energy(profile: Profile) -> list[str]:
    found = []
    for t in profile.energy:
        if t.figure.joules is None or not t.main:
            continue
        error = f" ± {_j(t.figure.error_j)}" if t.figure.error_j else ""
        paper = f"; by the paper's equation 4 {_j(t.paper_j)}" if t.paper_j is not None else ""
        found.append(
            f"energy of {t.scope} in {t.steps} steps: {_j(t.figure.joules)}{error} "
            f"{t.figure.label}{paper}"
        )
    return found


def _cost(profile: Profile) -> list[str]:
    cost = profile.overhead
    found = [
        f"sampling took {100 * cost.of_one_core:.2f} % of one core, {cost.polls:,} reads"
        + (f", periods stretched {cost.stretched:.1f} times" if cost.stretched > 1 else "")
    ]
    if cost.slowdown is not None:
        found.append(
            f"profiling made steps {100 * cost.slowdown:+.1f} % longer: "
            f"{duration(float(np.median(cost.plain_step_ns)) / 1e9)} without, "
            f"{duration(float(np.median(cost.profiled_step_ns)) / 1e9)} with, "
            f"{len(cost.plain_step_ns)} blocks each in turn"
        )
    return found


def _table(title: str, rows: Sequence[Sequence[str]], align: str) -> list[str]:
    if len(rows) < 2:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, align, strict=True)
        ).rstrip()
        for row in rows
    ]
    return ["", title, lines[0], "─" * max(map(len, lines)), *lines[1:]]
