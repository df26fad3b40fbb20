"""Why there is no power, temperature, GPU or frequency: what people ask first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgrad.trace.model import Absent, Series, Trace

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
    """Why there is no power, temperature, GPU or frequency, as far as there is none."""
    reasons: dict[str, list[str]] = {}
    for absent in trace.absent:
        reasons.setdefault(absent.name.split("/")[0].split()[0], []).append(absent.reason)
    found = []
    for what, quantities, samplers, prefix in _ASKED:
        if not any(_tells(s, quantities, prefix) for s in trace.series.values()):
            found.append(Absent(what, _why(samplers, reasons)))
    return tuple(found)


def _tells(series: Series, quantities: Sequence[str], prefix: str) -> bool:
    known = series.channel.quantity in quantities and series.channel.name.startswith(prefix)
    return known and len(series) > 0


def _why(samplers: Sequence[str], reasons: Mapping[str, Sequence[str]]) -> str:
    given = [f"{name}: {reasons[name][0]}" for name in samplers if name in reasons]
    return "; ".join(given) or "no sampler was asked"
