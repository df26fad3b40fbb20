"""Which device a selector means, and why: rules over a survey, nothing is loaded here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pocketgrad.backends.advice import missing_device_text
from pocketgrad.backends.quarantine import Verdict
from pocketgrad.backends.runtimes import DeviceReport, Survey
from pocketgrad.base.errors import DeviceError, UnknownNameError

Failures = Callable[[DeviceReport], tuple[Verdict, ...]]

SELECTORS = ("auto", "cpu", "gpu", "reference", "null")
FAMILY_SELECTORS = ("pocl", "intel", "nvidia", "amd", "adreno", "mali")


@dataclass(frozen=True, slots=True)
class Choice:
    """The backend to use and the reason; ``device`` is set for backend 'opencl' only."""

    backend: Literal["opencl", "reference", "null"]
    device: DeviceReport | None
    why: str


def rank(device: DeviceReport, failed: int) -> tuple[int, int]:
    """The order of preference, lowest first: no failed check, then the kind of device."""
    if device.kind == "gpu":
        place = 1 if device.unified_memory else 0
    elif device.kind == "cpu":
        place = {"pocl": 2, "intel": 3}.get(device.family, 4)
    else:
        place = 5
    return failed, place


def pick(found: Survey, selector: str, failures: Failures) -> Choice:
    """What ``selector`` means here: auto, cpu, gpu, reference, null, a family ('pocl'), an ident
    ('pocl:0'), PLATFORM:INDEX, or a part of a platform's or device's name."""
    selector = selector.strip().lower()
    if selector in ("reference", "null"):
        return Choice("reference" if selector == "reference" else "null", None, "asked for by name")
    if selector == "auto" and not found.usable:
        why = f"no usable OpenCL device, so NumPy computes, slowly: {missing_device_text(found)}"
        return Choice("reference", None, why)
    ranked = sorted(
        _matching(found, selector), key=lambda device: rank(device, len(failures(device)))
    )
    first = ranked[0]
    if selector == "auto":
        return Choice("opencl", first, _why(first, ranked[1:], failures))
    others = [device.ident for device in ranked[1:]]
    why = f"'{selector}' asked for" + (f"; also matching: {', '.join(others)}" if others else "")
    return Choice("opencl", first, why)


def _matching(found: Survey, selector: str) -> list[DeviceReport]:
    """The usable devices a selector means, at least one."""
    means = [device for device in found.devices if _means(selector, device)]
    usable = [device for device in means if device.usable]
    if usable:
        return usable
    if means:
        broken = "; ".join(f"{device.ident}: {device.unusable}" for device in means)
        raise DeviceError(f"device '{selector}' was found but cannot be used: {broken}")
    if selector in (*SELECTORS, *FAMILY_SELECTORS):
        there = ", ".join(device.ident for device in found.usable)
        what = f"usable here: {there}" if there else missing_device_text(found)
        raise DeviceError(f"there is no '{selector}' device on this machine; {what}")
    raise UnknownNameError("device", selector, {*SELECTORS, *(d.ident for d in found.usable)})


def _means(selector: str, device: DeviceReport) -> bool:
    if selector == "auto":
        return device.usable
    if selector in (device.ident, device.family, device.kind):
        return True
    if selector in (*SELECTORS, *FAMILY_SELECTORS, ""):
        return False
    name, colon, index = selector.rpartition(":")
    if colon and index.isdigit():
        return int(index) == device.index and name in device.platform.lower()
    return selector in device.platform.lower() or selector in device.name.lower()


def _why(first: DeviceReport, rest: list[DeviceReport], failures: Failures) -> str:
    kind = {"gpu": "a GPU comes first", "cpu": f"the best CPU runtime here is {first.family}"}
    parts = [kind.get(first.kind, "it is the only kind of device here")]
    if first.kind == "cpu" and not any(device.kind == "gpu" for device in rest):
        parts.insert(0, "there is no usable GPU")
    mine = failures(first)
    if mine:
        parts.append(f"without {', '.join(v.family for v in mine)}, which failed the self-check")
    passed_over = [d for d in rest if rank(d, 0) < rank(first, 0) and failures(d)]
    for device in passed_over:
        bad = ", ".join(v.family for v in failures(device))
        parts.append(f"{device.ident} is passed over: its self-check failed for {bad}")
    return "; ".join(parts)
