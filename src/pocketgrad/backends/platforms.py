"""Finds the OpenCL drivers of this machine, judges them, and opens the device that was chosen.

`survey` never loads a driver into this process; `prepare` then lets the loader see only those that
survived their probe, and `open_device` turns a report into a pyopencl device.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pocketgrad.backends import choosing
from pocketgrad.backends.advice import REFRESH
from pocketgrad.backends.cachefile import why_not_writable
from pocketgrad.backends.choosing import Choice
from pocketgrad.backends.icds import Icd, discover, folder_of
from pocketgrad.backends.pinning import cores, pins
from pocketgrad.backends.probing import probe_all, remember, remembered
from pocketgrad.backends.quarantine import quarantine
from pocketgrad.backends.runtimes import DeviceReport, Survey, name_devices
from pocketgrad.base.config import Settings, settings
from pocketgrad.base.errors import DeviceError

if TYPE_CHECKING:
    import pyopencl


def survey(refresh: bool = False, config: Settings | None = None) -> Survey:
    """Every driver and its devices; from the cache unless a driver changed, or ``refresh``."""
    config = config or settings()
    icds = discover(config)
    known = {} if refresh else {icd: remembered(icd, config) for icd in icds}
    reports = {icd: report for icd, report in known.items() if report is not None}
    # With nothing usable look again: a library may have got what it depends on.
    if not any(device.usable for report in reports.values() for device in report.devices):
        reports = {i: r for i, r in reports.items() if r.outcome in ("crashed", "hanging")}
    fresh = [icd for icd in icds if icd not in reports]
    notes = []
    why = why_not_writable(config.cache_dir) if fresh else ""
    reports |= dict(zip(fresh, probe_all(fresh, config), strict=True))
    if why:
        notes.append(
            f"the cache folder {config.cache_dir} cannot be written ({why}): drivers are probed "
            "at every start; set POCKETGRAD_CACHE to a folder of yours"
        )
    else:
        for icd in fresh:
            remember(icd, reports[icd], config)
    return Survey(name_devices(tuple(reports[icd] for icd in icds)), tuple(notes))


def choose(found: Survey | None = None, selector: str = "auto") -> Choice:
    """What ``selector`` means on this machine, with the reason; see `choosing.pick`."""
    return choosing.pick(found or survey(), selector, quarantine().failed)


def find(selector: str = "auto", found: Survey | None = None) -> DeviceReport:
    """The OpenCL device a selector means; DeviceError when there is none."""
    choice = choose(found, selector)
    if choice.device is None:
        raise DeviceError(f"'{selector}' is no OpenCL device here: {choice.why}")
    return choice.device


def prepare(found: Survey | None = None, config: Settings | None = None) -> Survey:
    """Point the OpenCL loader at the drivers that passed their probe, so that a crashing one never
    enters this process; call it before pyopencl is imported."""
    config = config or settings()
    found = found or survey(config=config)
    sound = [Icd(r.library, r.origin) for r in found.runtimes if r.outcome == "ok"]
    os.environ["PYOPENCL_NO_CACHE"] = "1"  # programs.py keeps what was built, and where users look
    os.environ["OCL_ICD_VENDORS"] = str(folder_of(sound, config))
    for name, value in pins(config.affinity, *cores()).items():
        os.environ[name] = value
    return found


def open_device(report: DeviceReport, config: Settings | None = None) -> pyopencl.Device:
    """The pyopencl device that ``report`` describes, in this process."""
    prepare(config=config)  # the loader reads it when platforms are first listed
    try:
        import pyopencl as cl  # loads the drivers: late
    except ImportError as error:
        raise DeviceError(
            f"device {report.ident} needs pyopencl: {error}; pip install pyopencl"
        ) from error

    try:
        platforms = cl.get_platforms()
    except cl.Error:
        platforms = []
    wanted = (report.platform, report.platform_version)
    for candidate in platforms:
        if (candidate.name.strip(), candidate.version.strip()) != wanted:
            continue
        devices = candidate.get_devices()
        if report.index < len(devices) and devices[report.index].name.strip() == report.name:
            return devices[report.index]
    names = ", ".join(p.name.strip() for p in platforms) or "no platform"
    raise DeviceError(
        f"device {report.ident} ({report.name} of {report.platform}) is not there any more; this "
        f"process has: {names}. {REFRESH}; drivers are fixed once a process has used OpenCL"
    )
