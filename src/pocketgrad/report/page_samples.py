"""What the page shows of samples: cores over three steps, memory, a chart per kind of sensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from pocketgrad.report.curves import Curve, cores, curve, mean_of, time_mean
from pocketgrad.trace.model import Series, Trace
from pocketgrad.trace.profile import MemoryCurve, Profile, StepRow

MOST_POINTS = 1_500  # of one line
MOST_LINES = 8  # in one chart: as many as there are colours
SHOWN_STEPS = 3  # as in the papers

# Where the reason stands when a chart would be empty: the samplers that could have filled it.
_SENSORS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Power", "power", ("power", "ina3221", "rapl", "power_supply", "gpu_nvml", "odpm")),
    ("Temperature", "temperature", ("temperature", "thermal", "hwmon")),
    ("Clocks", "frequency", ("frequency", "cpufreq")),
    ("GPU", "gpu", ("gpu", "drm_fdinfo")),
    ("Waiting for a resource (pressure)", "pressure", ("pressure",)),
)
_UNIT_SHOWN = {"degC": "°C"}


@dataclass(frozen=True, slots=True)
class _Panel:
    """One chart of sensors: its lines, or why there are none."""

    title: str
    curves: Sequence[Curve]
    absent: Sequence[tuple[str, str]]
    zero: bool = True


def content(profile: Profile, origin: int) -> dict[str, Any]:
    """Cores, memory, sensors, strips under the timeline, and all channels."""
    busy = cores(profile.trace)
    panels = [_sensor(profile, *row) for row in _SENSORS]
    return {
        "cores": _cores(profile, busy, origin),
        "memory": _memory(profile, origin),
        "sensors": [_panel(panel, origin) for panel in panels],
        "sensorsNote": "The faint stripes are every other measured step. A counter of energy is "
        "shown as power, a counter of time as a share. Drag over a chart to look closer; double "
        "click for all.",
        "strips": _strips(profile, busy, panels, origin),
        "channels": [_channel(series) for series in profile.trace.series.values()],
    }


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [None if isnan(v) else float(f"{v:.6g}") for v in values]


def _line(c: Curve, origin: int) -> dict[str, Any]:
    thin = c.thinned(MOST_POINTS)
    known = c.values[~np.isnan(c.values)]
    least, median, most = np.percentile(known, (0, 50, 100)).tolist() if len(known) else [None] * 3
    return {
        "name": c.name,
        "scope": c.scope,
        "source": c.source,
        "basis": c.basis,
        "refresh": c.refresh_ns,
        "t": (thin.t_ns - origin).tolist(),
        "v": _numbers(thin.values.tolist()),
        "until": c.end_ns - origin,
        "least": least,
        "median": median,
        "most": most,
    }


def _panel(panel: _Panel, origin: int) -> dict[str, Any]:
    shown = sorted(panel.curves, key=lambda c: -float(np.nanmax(c.values)))[:MOST_LINES]
    left = len(panel.curves) - len(shown)
    unit = shown[0].unit if shown else ""
    return {
        "title": panel.title,
        "unit": _UNIT_SHOWN.get(unit, unit),
        "series": [_line(c, origin) for c in shown],
        "absent": panel.absent,
        "zero": panel.zero,
        "note": f"The {MOST_LINES} with the highest values; {left} more are in samples.csv."
        if left
        else "",
    }


def _sensor(profile: Profile, title: str, what: str, samplers: tuple[str, ...]) -> _Panel:
    found = _known(_of(profile.trace, what))
    if found:
        unit = found[0].unit
        same = [c for c in found if c.unit == unit]
        return _Panel(title, same, (), zero=what != "temperature")
    return _Panel(title, (), _reasons(profile, what, samplers))


def _of(trace: Trace, what: str) -> list[Curve]:
    series = list(trace.series.values())
    if what == "power":
        return [curve(s) for s in series if s.channel.quantity in {"power", "energy"}]
    if what == "pressure":
        return [curve(s) for s in series if s.channel.name.startswith("pressure/")]
    if what == "gpu":
        return [curve(s) for s in series if _tells_gpu_load(s)]
    wanted = [s for s in series if s.channel.quantity == what]
    return [curve(s) for s in wanted if not s.channel.name.endswith("/limit")]


def _tells_gpu_load(series: Series) -> bool:
    name, quantity = series.channel.name, series.channel.quantity
    loads = name.startswith("gpu_") and quantity == "share" and "memory" not in name
    return loads or (name.startswith("drm_fdinfo/") and quantity == "time")


def _known(curves: Sequence[Curve]) -> list[Curve]:
    return [c for c in curves if len(c) and not np.isnan(c.values).all()]


def _reasons(profile: Profile, what: str, samplers: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The answer for the whole kind if there is one, else that of every sampler for it."""
    whole = [(what, a.reason) for a in profile.absent if a.name.lower() == what]
    if whole:
        return tuple(whole)
    every = dict.fromkeys((*profile.absent, *profile.trace.absent))
    found = tuple((a.name, a.reason) for a in every if a.name.startswith(samplers))
    return found or ((what, "nothing that was sampled tells it"),)


def _window(profile: Profile) -> tuple[StepRow, ...]:
    """Three neighbouring measured steps from the middle of the run."""
    steps = profile.measured_steps or profile.steps
    first = max(0, (len(steps) - SHOWN_STEPS) // 2)
    return steps[first : first + SHOWN_STEPS]


def _cores(profile: Profile, busy: tuple[Curve, ...], origin: int) -> dict[str, Any]:
    steps = _window(profile)
    if not steps or not busy:
        reasons = _reasons(profile, "cores", ("proc_stat", "cpuidle"))
        return {"rows": [], "steps": [], "window": [0, 1], "note": "", "absent": reasons}
    start, end = steps[0].start_ns, steps[-1].end_ns
    measured = profile.measured_steps or profile.steps
    rows = []
    for c in busy:
        part = c.within(start, end)
        rows.append(
            {
                "name": c.name,
                "t": [*(part.t_ns - origin).tolist(), part.end_ns - origin],
                "v": [*_numbers(part.values.tolist()), None],
                "mean": time_mean(c, start, end),
                "bySteps": [time_mean(c, s.start_ns, s.end_ns) for s in steps],
                "all": time_mean(c, measured[0].start_ns, measured[-1].end_ns),
            }
        )
    return {
        "rows": rows,
        "window": [start - origin, end - origin],
        "steps": [
            {"number": s.number, "start": s.start_ns - origin, "end": s.end_ns - origin}
            for s in steps
        ],
        "note": _resolution(busy, steps),
        "absent": [],
    }


def _resolution(busy: tuple[Curve, ...], steps: Sequence[StepRow]) -> str:
    note = "The height of a row is the share of time the core worked (equation 1)."
    if all("cpuidle" in c.source for c in busy):  # a busy core's counter stands still
        return f"{note} Idle time is counted to the microsecond, when a core wakes."
    refresh = [c.refresh_ns for c in busy if c.refresh_ns]
    if not refresh:
        return f"{note} The run was too short to tell how often the counters change."
    finest = float(np.median(refresh))
    length = float(np.median([s.duration_ns for s in steps]))
    coarse = f", longer than a step of {length / 1e6:.3g} ms: within a step nothing is resolved."
    rest = coarse if finest > length else "; what is shorter is averaged."
    return f"{note} The counters say something new every {finest / 1e6:.3g} ms{rest}"


def _memory(profile: Profile, origin: int) -> dict[str, Any]:
    found = _known([curve(s) for s in profile.trace.of("bytes") if _is_of_process(s)])
    process = _panel(
        _Panel("Measured over the run", found, _reasons(profile, "memory", ("process", "cgroup"))),
        origin,
    )
    plan = profile.memory
    if plan is None or not len(plan.nbytes):
        reasons = [["plan", "no memory curve was recorded"]]
        empty: dict[str, Any] = {"kinds": [], "absent": reasons, "note": "", "table": []}
        return {**empty, "process": process}
    return {**_plan(plan), "process": process}


def _is_of_process(series: Series) -> bool:
    channel = series.channel
    own = channel.name in {"process/resident", "cgroup/memory"} or channel.scope.startswith("own")
    return own or channel.name.startswith("gpu_")


def _plan(plan: MemoryCurve) -> dict[str, Any]:
    total = plan.nbytes.sum(axis=1)
    peak = int(np.argmax(total))
    launches = len(total)
    kinds = [(name, plan.nbytes[:, i]) for i, name in enumerate(plan.kinds)]
    table = [
        [name, int(values[peak]), int(values.min()), int(values.max())] for name, values in kinds
    ]
    table.append(["in use together", int(total[peak]), int(total.min()), int(total.max())])
    return {
        "x": list(range(1, launches + 2)),  # the last launch has a width too
        "xUnit": "",
        "xLabel": "launch",
        "kinds": [
            {"name": name, "v": [*values.tolist(), int(values[-1])]}
            for name, values in kinds
            if values.any()
        ],
        "table": table,
        "note": f"The plan uses {plan.peak_nbytes:,} bytes at most, at launch {peak + 1} of "
        f"{launches}; {plan.allocated_nbytes:,} bytes are allocated once, before the first step.",
        "absent": [],
    }


def _strips(
    profile: Profile, busy: tuple[Curve, ...], panels: Sequence[_Panel], origin: int
) -> list[dict[str, Any]]:
    """Up to four lines under the timeline: cores, GPU, power, memory."""
    power = [e.channel for e in profile.energy if e.main]
    powers = [c for c in panels[0].curves if not power or c.name in power]
    resident = profile.trace.series.get("process/resident")
    rows = [
        ("cores", mean_of(busy, "mean of all cores"), 100.0),
        ("GPU", next(iter(panels[3].curves), None), 100.0),
        ("power", next(iter(powers), None), 0.0),
        ("memory", curve(resident) if resident is not None and len(resident) else None, 0.0),
    ]
    return [_strip(short, c, top, hue, origin) for hue, (short, c, top) in enumerate(rows) if c]


def _strip(short: str, c: Curve, top: float, hue: int, origin: int) -> dict[str, Any]:
    line = _line(c, origin)
    return {
        "short": short,
        "name": c.name if c.scope in {"mean", ""} else f"{c.name} ({c.scope})",
        "unit": c.unit,
        "t": line["t"],
        "v": line["v"],
        "until": line["until"],
        "top": top or (line["most"] or 1.0) * 1.05,
        "hue": hue,
    }


def _channel(series: Series) -> dict[str, Any]:
    channel = series.channel
    return {
        "name": channel.name,
        "scope": channel.scope,
        "unit": channel.unit,
        "kind": str(channel.kind),
        "basis": str(channel.basis),
        "samples": len(series),
        "refresh": series.refresh_ns,
        "last": float(series.values[-1]) if len(series) else None,
        "source": channel.source,
    }
