"""Numbers about a whole run: as the paper defines them (L, equations 1 to 4), and corrected.

Both are over the measured steps, so the first three are left out either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pocketgrad.profile.meters import Meter
from pocketgrad.telemetry.energy import average_utilisation, paper_eq4_j
from pocketgrad.telemetry.usage import all_cores, core_utilisation, cores, idle_ratio
from pocketgrad.trace.model import Kind, Series, Trace
from pocketgrad.trace.profile import Metric, OpRow, StepRow, Work

NO_CORES = "neither /proc/stat nor cpuidle was sampled for all of the measured steps"


def metrics(
    trace: Trace, steps: Sequence[StepRow], ops: Sequence[OpRow], batch: int, period_ns: int
) -> tuple[Metric, ...]:
    """Of the measured steps; none if there are none."""
    if not steps:
        return ()
    start, end = steps[0].start_ns, steps[-1].end_ns
    return (
        *_speed(steps, batch),
        *_shares(steps, ops),
        *_cores(trace, start, end, period_ns),
        *_gpus(trace, start, end),
        *_memory(trace),
    )


def _speed(steps: Sequence[StepRow], batch: int) -> Iterator[Metric]:
    durations = [step.duration_ns for step in steps]
    yield Metric("step time", float(np.median(durations)) / 1e9, "s", "median of the steps")
    yield Metric(
        "throughput", batch * len(steps) * 1e9 / sum(durations), "samples/s",
        "batch × steps over the time of the steps",
    )  # fmt: skip


def _shares(steps: Sequence[StepRow], ops: Sequence[OpRow]) -> Iterator[Metric]:
    """Of the time of the steps, on the device's own clock."""
    whole = sum(step.duration_ns for step in steps)
    busy = sum(step.busy_ns for step in steps)
    if not ops:
        return
    yield Metric("device busy", 100 * busy / whole, "%", "time with a launch running, over all")
    for work, name in ((Work.COPY, "copy share"), (Work.LAYOUT, "layout share")):
        spent = sum(float(op.step_ns.sum()) for op in ops if op.work is work)
        yield Metric(name, 100 * spent / whole, "%", f"time of {work.value} launches, over all")


def _cores(trace: Trace, start: int, end: int, period_ns: int) -> Iterator[Metric]:
    best = all_cores(trace, start, end)
    ticks = {c: u for c in cores(trace) if (u := _by_ticks(trace, c, start, end)) is not None}
    for name, found, paper, how in (
        ("CPU utilisation", best, False, "mean over cores, from cpuidle where it is"),
        ("CPU utilisation", ticks, True, "equations 1 and 2, from the ticks of /proc/stat"),
    ):
        mean = average_utilisation(list(found.values()))
        yield Metric(name, mean, "%", how if mean is not None else NO_CORES, paper)
    for core, share in best.items():
        yield Metric(f"{core} utilisation", share, "%", "active time over all")
        ratio = idle_ratio(trace, core, start, end, period_ns)
        shown = f"share of {period_ns / 1e6:g} ms periods with utilisation 0"
        yield Metric(f"{core} idle-state ratio", ratio, "%", shown, paper=True)
        yield Metric(f"{core} idle-state ratio", 100 - share, "%", "idle time over all")


def _by_ticks(trace: Trace, core: str, start: int, end: int) -> float | None:
    """Equation 1 from /proc/stat alone."""
    only = {n: s for n, s in trace.series.items() if n.startswith(f"proc_stat/{core}/")}
    return core_utilisation(Trace(series=only), core, start, end) if only else None


def _gpus(trace: Trace, start: int, end: int) -> Iterator[Metric]:
    for series in trace.of("share"):
        name = series.channel.name
        if not name.startswith("gpu_") or not name.endswith("/utilisation") or not len(series):
            continue
        yield Metric(
            f"{series.channel.scope} utilisation", _mean_held(series, start, end), "%",
            f"equation 3, as {series.channel.source} gives it: each value holds until the next",
            paper=True,
        )  # fmt: skip


def _mean_held(series: Series, start: int, end: int) -> float | None:
    """The mean over a window, or over the part of it that is covered."""
    low, high = max(start, int(series.t_ns[0])), min(end, int(series.t_ns[-1]))
    if low >= high:
        return None
    edges = np.unique(np.clip(series.t_ns, low, high))
    values = series.values[np.searchsorted(series.t_ns, edges[:-1], side="right") - 1]
    return float((values * np.diff(edges)).sum() / (high - low))


def _memory(trace: Trace) -> Iterator[Metric]:
    peak = trace.series.get("process/peak_resident")
    if peak is not None and len(peak):
        yield Metric(
            "peak memory of the process", float(peak.values.max()), "B",
            "the kernel's own peak counter, not samples",
        )  # fmt: skip


def paper_energy_j(meter: Meter, start: int, end: int, period_ns: int) -> float | None:
    """Equation 4: the value at every nominal sampling time, times the nominal interval."""
    if meter.channel.kind is Kind.CUMULATIVE or not meter.covers(start, end):
        return None
    at = np.arange(start, end, period_ns)
    values = meter.series.values[np.searchsorted(meter.t_ns, at, side="right") - 1]
    return paper_eq4_j(period_ns, values.tolist())
