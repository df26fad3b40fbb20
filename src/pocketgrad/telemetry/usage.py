"""How busy each core was over a window, from whichever counters a trace has: equations 1 and 2.

Pure: a trace goes in. Power and energy are in `energy`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketgrad.telemetry.energy import grown_between, idle_state_ratio, utilisation
from pocketgrad.trace.model import Trace


def cores(trace: Trace) -> list[str]:
    """The cores that were seen, in the order of their numbers."""
    found = {
        name.split("/")[1] for name in trace.series if name.startswith(("proc_stat/", "cpuidle/"))
    }
    return sorted(found, key=lambda core: (len(core), core))


def core_utilisation(trace: Trace, core: str, start_ns: float, end_ns: float) -> float | None:
    """Percent of a window that a core was busy; None if the samples do not cover it.

    From cpuidle where it is, which resolves microseconds, else from the ticks of /proc/stat.
    """
    if end_ns <= start_ns:
        return None
    idle = trace.series.get(f"cpuidle/{core}/idle")
    if idle is not None:
        slept = grown_between(idle, start_ns, end_ns)
        if slept is not None:  # an idle period counts when it ends, so one may exceed the window
            return 100 * max(0.0, 1 - slept / (end_ns - start_ns))
    states = [trace.series.get(f"proc_stat/{core}/{state}") for state in ("busy", "idle")]
    grown = [grown_between(s, start_ns, end_ns) if s is not None else None for s in states]
    busy, waited = grown
    return None if busy is None or waited is None else utilisation(busy, waited)


def all_cores(trace: Trace, start_ns: float, end_ns: float) -> Mapping[str, float]:
    """The utilisation of every core of which it is known; their mean is equation 2."""
    shares = {core: core_utilisation(trace, core, start_ns, end_ns) for core in cores(trace)}
    return {core: share for core, share in shares.items() if share is not None}


def idle_ratio(trace: Trace, core: str, start_ns: int, end_ns: int, period_ns: int) -> float | None:
    """The paper's idle-state ratio: percent of periods in which a core did nothing at all.

    It depends on the period, which therefore has to be reported with it.
    """
    starts = range(start_ns, end_ns - period_ns + 1, period_ns)
    shares = [core_utilisation(trace, core, start, start + period_ns) for start in starts]
    return idle_state_ratio([share for share in shares if share is not None])
