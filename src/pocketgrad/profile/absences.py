"""Why there is no power, temperature, GPU or frequency: what people ask first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pocketgrad.trace.model import Absent, Channel, Trace

# What is asked, the quantities that answer it, the samplers that would have them, and whose
# channels count (a prefix; all where it is empty).
_ASKED: Sequence[tuple[str, tuple[str, ...], tuple[str, ...], str]] = (
    (
        "power",
        ("power", "energy"),
        ("rapl", "ina3221", "power_supply", "odpm", "raspberry_pi", "gpu_nvml", "gpu_nvidia"),
        "",
    ),
    ("temperature", ("temperature",), ("thermal", "hwmon"), ""),
    (
        "GPU",
        ("share", "frequency", "time", "energy", "power"),
        (
            "gpu_adreno", "gpu_amd", "gpu_intel", "gpu_jetson", "gpu_mali", "gpu_nvidia",
            "gpu_nvml", "gpu_v3d", "drm_fdinfo",
        ),
        "gpu_",
    ),
    ("CPU frequency", ("frequency",), ("cpufreq",), "cpufreq"),
)  # fmt: skip


def answers(trace: Trace) -> tuple[Absent, ...]:
    """Why there is no power, temperature, GPU or frequency in a trace, as far as there is none."""
    seen = [series.channel for series in trace.series.values() if len(series)]
    return why_not(seen, trace.absent)


def why_not(channels: Iterable[Channel], absent: Iterable[Absent]) -> tuple[Absent, ...]:
    """The same, from the channels that there are and what samplers said of the others."""
    known = [(channel.quantity, channel.name) for channel in channels]
    reasons: dict[str, list[str]] = {}
    for one in absent:
        reasons.setdefault(one.name.split("/")[0].split()[0], []).append(one.reason)
    return tuple(
        Absent(what, _why(samplers, reasons))
        for what, quantities, samplers, prefix in _ASKED
        if not any(q in quantities and name.startswith(prefix) for q, name in known)
    )


def _why(samplers: Sequence[str], reasons: Mapping[str, Sequence[str]]) -> str:
    given = [f"{name}: {reasons[name][0]}" for name in samplers if name in reasons]
    return "; ".join(given) or "no sampler was asked"
