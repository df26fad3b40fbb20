"""Our own process: resident memory and its peak, swap, CPU time, waiting, switches.

Not the memory of buffers on a unified-memory GPU: the driver holds those (`drm_fdinfo`, `gpu_*`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pocketgrad.telemetry.api import MS, Found, Probe, Search
from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.telemetry.parse import fields, number
from pocketgrad.trace.model import Basis, Channel, Kind

KIB = 1024
STATUS = {  # key: name, quantity, kind, factor
    "VmHWM": ("peak_resident", "bytes", Kind.GAUGE, KIB),
    "VmSwap": ("swapped", "bytes", Kind.GAUGE, KIB),
    "voluntary_ctxt_switches": ("switches_voluntary", "count", Kind.CUMULATIVE, 1),
    "nonvoluntary_ctxt_switches": ("switches_forced", "count", Kind.CUMULATIVE, 1),
}
ROLLUP = {
    "Pss": ("proportional", "bytes", Kind.GAUGE, KIB),
    "Private_Dirty": ("private_dirty", "bytes", Kind.GAUGE, KIB),
}
Table = Mapping[str, tuple[str, str, Kind, int]]


def find(machine: Machine) -> Found:
    """Each of four files that can be read."""
    search = Search("process")
    folder = f"/proc/{machine.process}"
    resident = _channel("resident", "bytes", Kind.GAUGE, f"{folder}/statm")
    page = machine.page_nbytes
    search.file(machine, resident, lambda text: int(text.split()[1]) * page, 50 * MS)
    _schedstat(machine, search, f"{folder}/schedstat")
    _table(machine, search, f"{folder}/status", STATUS, 250 * MS)
    # Holds the lock of the address space for as long as there are mappings: rarely.
    _table(machine, search, f"{folder}/smaps_rollup", ROLLUP, 5000 * MS)
    return search.found("")


def _channel(name: str, quantity: str, kind: Kind, source: str, note: str = "") -> Channel:
    return Channel(f"process/{name}", quantity, kind, "process", source, Basis.COUNTER, note=note)


def _schedstat(machine: Machine, search: Search, path: str) -> None:
    note = "of the main thread"
    run = _channel("main_thread_run", "time", Kind.CUMULATIVE, path, note)
    wait = _channel("main_thread_wait", "time", Kind.CUMULATIVE, path, f"{note}: ready, not run")

    def both(text: str) -> Mapping[str, float]:
        ran, waited, _ = map(int, text.split())
        return {run.name: ran, wait.name: waited}

    search.probe(Probe((run, wait), lambda: machine.value(path, both), 50 * MS))


def _table(machine: Machine, search: Search, path: str, table: Table, period_ns: int) -> None:
    read = _reader(machine, path, table)
    try:
        first = read()
    except UnreadableError as error:
        search.missing(f"process {path.rsplit('/', 1)[-1]}", str(error))
        return
    channels = tuple(_channel(*row[:3], path) for row in table.values())
    present = tuple(channel for channel in channels if channel.name in first)
    for channel in channels:
        if channel not in present:
            search.missing(channel.name, f"{path} does not state it")
    if present:
        search.probe(Probe(present, read, period_ns))


def _reader(machine: Machine, path: str, table: Table) -> Callable[[], Mapping[str, float]]:
    def parse(text: str) -> Mapping[str, float]:
        return {
            f"process/{table[key][0]}": number(value) * table[key][3]
            for key, value in fields(text)
            if key in table
        }

    return lambda: machine.value(path, parse)
