"""A made-up profile with everything in it that a real one can have; the same on every machine."""

from __future__ import annotations

import numpy as np

from pocketgrad.trace.clock import Alignment
from pocketgrad.trace.model import Absent, Basis, Channel, Kind, Series, Span, Trace
from pocketgrad.trace.profile import (
    Ceiling,
    EnergyFigure,
    EnergyTotal,
    Events,
    GroupRow,
    Label,
    LaunchRow,
    MemoryCurve,
    Metric,
    OpRow,
    OpShare,
    Overhead,
    Profile,
    StepRow,
    Work,
)

MS = 1_000_000
START = 5_000 * MS  # the machine's clock does not begin at 0
KINDS = ("parameters", "gradients", "optimizer state", "input", "activations", "workspace")

# Operations (the first gives the launch its layer), layer, phase, work, µs, flops, bytes.
_PLAN = (
    (("cast", "mul"), "", "forward", "compute", 40, 3e5, 1.5e6),
    (("conv2d", "add", "relu"), "features.0", "forward", "compute", 420, 8.0e7, 3.2e6),
    (("max_pool2d",), "features.2", "forward", "compute", 90, 8e5, 3.1e6),
    (("transpose",), "features.3", "forward", "layout", 120, 0, 2.4e6),
    (("conv2d", "add", "relu"), "features.3", "forward", "compute", 610, 1.6e8, 2.4e6),
    (("mat_mul", "add"), "classifier.1", "forward", "compute", 150, 1.2e7, 1.9e6),
    (("cross_entropy",), "loss", "forward", "compute", 25, 4e4, 2e4),
    (("mat_mul",), "classifier.1", "backward", "compute", 190, 2.4e7, 3.6e6),
    (("conv2d_grad_input", "mul"), "features.3", "backward", "compute", 640, 1.6e8, 3.3e6),
    (("conv2d_grad_weight",), "features.3", "backward", "compute", 930, 1.6e8, 2.8e6),
    (("max_pool2d_grad",), "features.2", "backward", "compute", 140, 8e5, 4.0e6),
    (("conv2d_grad_weight",), "features.0", "backward", "compute", 500, 8.0e7, 2.9e6),
    (("copy",), "", "backward", "copy", 60, 0, 2.2e6),
    (("sgd",), "", "update", "compute", 110, 2.2e6, 6.6e6),
)


def sample(steps: int = 12, warmups: int = 2, queues: int = 1, power: bool = True) -> Profile:
    """``queues`` 2 puts the gradients of weights beside the rest; without power it is said why."""
    warmups = min(warmups, steps - 1)
    launches = tuple(_launch(row, queues) for row in _PLAN)
    events, rows = _run(launches, steps, warmups)
    measured = [r for r in rows if not r.discarded]
    trace = _trace(rows, power)
    joules = 4.0 * sum(r.duration_ns for r in measured) / 1e9
    ops = _ops(launches, events, measured, joules if power else None)
    return Profile(
        metadata={
            "model": "sample_cnn",
            "batch": 16,
            "device": "Sample GPU",
            "driver": "1.2.3",
            "steps": steps,
            "pocketgrad": "0.1.0",
            "commit": "0123abc",
            "command": "pocketgrad profile --model sample_cnn --batch 16",
        },
        launches=launches,
        events=events,
        steps=tuple(rows),
        ops=ops,
        layers=_grouped(ops, lambda op: op.scope),
        phases=_grouped(ops, lambda op: op.phase or "gap"),
        trace=trace,
        clocks={"queue 0": Alignment(START, 0.0, 1.0, 1_400)},
        memory=_memory(len(launches)),
        ceilings=(
            Ceiling("arithmetic", 5.0e11, "flop/s", "independent fused multiply-adds in registers"),
            Ceiling("memory", 2.0e10, "B/s", "reading 256 MB"),
        ),
        energy=_energy(measured, joules) if power else (),
        metrics=(
            Metric("core utilisation", 61.5, "%", "mean over cores and steps", paper=True),
            Metric("energy of a step", None, "J", "no sensor covers the run"),
        ),
        overhead=Overhead(
            30 * MS,
            6_000 * MS,
            620,
            3,
            1.0,
            np.full(5, 4.0e6),
            np.array([4.02e6, 4.05e6, 4.1e6, 4.0e6, 4.06e6]),
        ),
        absent=() if power else (Absent("power", "no sensor of power was found here"),),
        warnings=("the clock speed changed by 12 % during the run: keep the device cool",),
    )


def _launch(row: tuple, queues: int) -> LaunchRow:
    names, scope, phase, work, _, flops, nbytes = row
    rest = len(names) - 1
    shares = (1.0,) if not rest else (1 - 0.1 * rest, *(0.1,) * rest)
    ops = tuple(
        OpShare(name, scope, phase, share, int(flops * share))
        for name, share in zip(names, shares, strict=True)
    )
    queue = "queue 1" if queues > 1 and "grad_weight" in names[0] else "queue 0"
    return LaunchRow(
        "+".join(names), names[0].split("_")[0], ops, scope, phase, Work(work), int(flops),
        int(nbytes), queue,
    )  # fmt: skip


def _run(launches: tuple[LaunchRow, ...], steps: int, warmups: int):
    random = np.random.default_rng(7)
    columns: list[list[int]] = []
    rows = []
    t = START
    for number in range(steps):
        begun, busy = t, 0
        free: dict[str, int] = {}
        t += 150_000  # the host loads and uploads
        for index, launch in enumerate(launches):
            length = int(
                _PLAN[index][4]
                * 1000
                * random.uniform(0.95, 1.1)
                * (2 - number / 2 if number < 2 else 1)
            )
            at = max(free.get(launch.queue, 0), t)
            columns.append([index, number, begun + 20_000, begun + 40_000, at, at + length])
            free[launch.queue] = at + length + 4_000
            busy += length
            if launch.queue == "queue 0":
                t = at + length + 4_000
        t = max(free.values())
        rows.append(StepRow(number, begun, t, min(busy, t - begun), number < warmups))
    columns.sort(key=lambda c: c[4])
    made = np.array(columns, np.int64).reshape(-1, 6).T
    return Events(*made), rows


def _ops(launches, events: Events, measured, joules: float | None) -> tuple[OpRow, ...]:
    numbers = [r.number for r in measured]
    times: dict[tuple[str, str, str], list] = {}
    length = np.zeros((len(numbers), len(launches)))
    for event in events:
        if event.step in numbers:
            length[numbers.index(event.step), event.launch] = event.end_ns - event.start_ns
    for index, launch in enumerate(launches):
        for op in launch.ops:
            row = times.setdefault((op.op, op.scope, op.phase), [launch, 0, 0, 0.0, False])
            row[1] += op.flops
            row[2] += int(launch.nbytes * op.share)
            row[3] = row[3] + length[:, index] * op.share
            row[4] = row[4] or launch.fused
    whole = np.array([r.duration_ns for r in measured], float)
    gaps = np.maximum(whole - sum(row[3] for row in times.values()), 0)
    total = float(sum(row[3].sum() for row in times.values()) + gaps.sum())

    def figure(spent) -> EnergyFigure | None:
        if joules is None:
            return None
        part = joules * float(spent.sum()) / total
        return EnergyFigure(part, Label.ATTRIBUTED, part / 5, "by time")

    found = [
        OpRow(op, scope, phase, row[0].work, 1, row[1], row[2], row[3], row[4], figure(row[3]))
        for (op, scope, phase), row in times.items()
    ]
    found.append(OpRow("gap", "", "", Work.GAP, 0, 0, 0, gaps, False, figure(gaps)))
    return tuple(sorted(found, key=lambda r: -r.median_ns))


def _grouped(ops: tuple[OpRow, ...], key) -> tuple[GroupRow, ...]:
    names = dict.fromkeys(key(op) for op in ops)
    made = []
    for name in names:
        part = [op for op in ops if key(op) == name]
        figures = [op.energy for op in part if op.energy]
        energy = (
            EnergyFigure(
                sum(f.joules or 0 for f in figures),
                Label.ATTRIBUTED,
                sum(f.error_j or 0 for f in figures),
            )
            if figures
            else None
        )
        made.append(
            GroupRow(
                name,
                sum(op.launches for op in part),
                sum(op.flops for op in part),
                sum(op.nbytes for op in part),
                np.sum([op.step_ns for op in part], axis=0),
                energy,
            )
        )
    return tuple(sorted(made, key=lambda r: -r.median_ns))


def _memory(launches: int) -> MemoryCurve:
    half = launches // 2
    shape = np.concatenate((np.linspace(0.2, 1, half), np.linspace(1, 0.1, launches - half)))
    columns = [
        np.full(launches, 3_000_000),
        np.linspace(0, 3_000_000, launches),
        np.full(launches, 3_000_000),
        np.full(launches, 150_000),
        9_000_000 * shape,
        700_000 * (np.arange(launches) % 3 == 1),
    ]
    return MemoryCurve(KINDS, np.stack(columns, axis=1).astype(np.int64), 19_000_000)


def _energy(measured, joules: float) -> tuple[EnergyTotal, ...]:
    window = sum(r.duration_ns for r in measured)

    def total(rail: str, main: bool, part: float) -> EnergyTotal:
        figure = EnergyFigure(part, Label.MEASURED, part / 20)
        return EnergyTotal(f"rail/{rail}", f"rail {rail}", main, figure, window, part * 1.1)

    return total("VDD_IN", True, joules), total("VDD_GPU", False, joules / 2)


def _trace(rows, power: bool) -> Trace:
    end = rows[-1].end_ns
    t = np.arange(START, end + 1, 2 * MS, dtype=np.int64)
    wave = 0.5 + 0.4 * np.sin((t - START) / 9e6)
    made: dict[str, Series] = {}

    def add(name: str, quantity: str, scope: str, values, kind=Kind.GAUGE, **more) -> None:
        channel = Channel(name, quantity, kind, scope, f"/sys/made/up/{name}", **more)
        made[name] = Series(channel, t, np.asarray(values, float))

    for core in range(4):
        busy = np.clip(wave + 0.1 * core - 0.2, 0, 1) * 2 * MS
        for state, grown in (("busy", busy), ("idle", 2 * MS - busy)):
            add(
                f"proc_stat/cpu{core}/{state}",
                "time",
                f"core cpu{core}",
                1e9 + np.cumsum(grown),
                Kind.CUMULATIVE,
                basis=Basis.COUNTER,
            )
    add("process/resident", "bytes", "process", 1.8e8 + 2e7 * wave)
    add("cpufreq/policy0/frequency", "frequency", "cores 0 1 2 3", 1.2e9 + 6e8 * (wave > 0.5))
    add("gpu_sample/utilisation", "share", "gpu sample", 100 * wave)
    if power:
        add("rail/VDD_IN", "power", "rail VDD_IN", 3 + 2 * wave, Kind.AVERAGE, whole=True)
        add(
            "rail/VDD_GPU",
            "power",
            "rail VDD_GPU",
            1 + 1.5 * wave,
            Kind.AVERAGE,
            within="rail/VDD_IN",
        )
        add("thermal/soc", "temperature", "zone soc", 45 + (t - START) / 2e7)
        add("thermal/skin", "temperature", "zone skin", 31 + (t - START) / 5e7)
    spans = []
    for r in rows:
        spans += [
            Span("step", "host", r.start_ns, r.end_ns),
            Span("load", "host", r.start_ns, r.start_ns + 60_000),
            Span("upload", "host", r.start_ns + 60_000, r.start_ns + 140_000),
            Span("wait", "host", r.start_ns + 200_000, r.end_ns),
        ]
    absent = [Absent("pressure/cpu/some", "/proc/pressure/cpu does not exist")]
    if not power:
        absent += [
            Absent("rapl", "/sys/class/powercap does not exist"),
            Absent("thermal", "/sys/class/thermal does not exist"),
        ]
    return Trace(tuple(spans), made, tuple(absent))
