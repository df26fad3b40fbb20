"""Kernels on Oclgrind, an OpenCL interpreter that sees wild accesses and races.

``tools/oclgrind`` runs this in a process of its own, since a process chooses its drivers once.
Every buffer is exactly as large as its value. The steps are those of the small samples of every op
and of whole training steps, each with the settings for CPUs and for GPUs. Numbers are judged
elsewhere: version 21.10 itself widens vectors of truth values wrongly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from tests.helpers.evaluate import evaluate
from tests.kernels.harness import Machine, compute, configurations, drawn, opened, step_of

from pocketgrad import nn
from pocketgrad.base.dtypes import Array, int32
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, Sample, TensorType, Value
from pocketgrad.kernels import select
from pocketgrad.kernels.spec import KernelSource, Launch, Rendered
from pocketgrad.nn.optim import SGD
from pocketgrad.ops import ALL
from pocketgrad.ops.transcendental import Relu
from pocketgrad.passes.pipeline import optimise
from pocketgrad.plan.plan import Step
from pocketgrad.plan.schedule import schedule
from pocketgrad.train.step import Inputs, StepSpec, build_graph

LIBRARY = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
LARGEST = 5000  # elements of all its operands
PLANTED = {  # faults that have to be found, and a kernel without any
    "read": "AT(y)[i] = AT(x)[i + 1];",
    "write": "AT(y)[i + 1] = AT(x)[i];",
    "race": "AT(y)[i / 2] = AT(x)[i] + i;",
    "none": "AT(y)[i] = AT(x)[i];",
}


@dataclass(frozen=True)
class Case:
    """A graph to run, and its inputs by name."""

    name: str
    graph: Graph
    feeds: Mapping[str, Array]


def cases() -> Iterator[Case]:
    """All that is run."""
    for op in ALL:
        for sample in op.samples():
            if sum(t.size for t in sample.ins) <= LARGEST:
                yield of_sample(sample)
    yield of_training("perceptron", nn.Sequential(nn.Linear(13, 7), nn.ReLU(), nn.Linear(7, 3)), 13)
    pooled = nn.Sequential(
        nn.Conv2d(2, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )
    yield of_training("convolution", nn.Sequential(pooled, nn.Linear(45, 3)), 2, 6, 7)


def of_sample(sample: Sample) -> Case:
    """One op."""
    with Builder() as builder:
        inputs = [builder.input(t, f"x{i}") for i, t in enumerate(sample.ins)]
        outputs = builder.add(sample.op, *inputs)
    feeds = {v.name: array for v, array in zip(inputs, drawn(sample), strict=True)}
    sizes = ", ".join(map(str, sample.ins))
    return Case(f"{sample.op} of {sizes}", builder.graph(outputs), feeds)


def of_training(name: str, model: nn.Module, *sample: int) -> Case:
    """A whole training step for a batch of 3."""
    inputs = Inputs(TensorType((3, *sample)), TensorType((3,), int32))
    model.initialise(0)
    graph = build_graph(StepSpec(model, "cross_entropy", SGD(0.1, momentum=0.9)), inputs, "train")
    rng = np.random.default_rng(0)
    feeds = {}
    for v in graph.inputs:
        floats = rng.uniform(0.1, 1, v.shape) if v.dtype.is_float else np.zeros(v.shape)
        feeds[v.name] = floats.astype(v.dtype.numpy)
    feeds["faults"] = np.full_like(feeds["faults"], -1)
    return Case(f"training step of a {name}", graph, feeds)


Known = Mapping[Value, Array]
Launched = tuple[KernelSource, tuple[int, ...], tuple[tuple[object, ...], ...]]


@dataclass(frozen=True)
class Report:
    """How many distinct launches were run, and what was found."""

    launches: int
    faults: tuple[str, ...]


class Log:
    """The file that Oclgrind writes to."""

    def __init__(self, path: Path) -> None:
        self.path, self._heard = path, 0

    def news(self) -> str:
        """What was added since the last call."""
        said = self.path.read_bytes()[self._heard :] if self.path.exists() else b""
        self._heard += len(said)
        return said.decode(errors="replace").strip()


class Walk:
    """Runs cases on one machine, each distinct launch once, and notes what Oclgrind says."""

    def __init__(self, on: Machine, log: Log, extra: int = 0) -> None:
        self.on, self.log, self.extra = on, log, extra
        self.launched: set[Launched] = set()
        self.faults: list[str] = []

    def run(self, case: Case) -> None:
        """Every step of a case."""
        graph = optimise(case.graph)
        known = evaluate(graph, case.feeds)
        for step in schedule(graph, self.on.info.image_lanes).steps:
            for node in step.nodes:  # of which some are the scheduler's own copies
                outs = node.op.ref(*(known[v] for v in node.inputs))
                known.update(zip(node.outputs, outs, strict=True))
            kernel, _ = select(step, self.on.info)
            for config in configurations(kernel, step, self.on.info, self.extra):
                rendered = kernel.render(step, config, self.on.info)
                launched = {key(launch) for launch in rendered.launches}
                if not launched <= self.launched:
                    self.launched |= launched
                    what = f"{step.name} ({kernel.name} {dict(config)}) of {case.name}"
                    self.compute(step, rendered, known, what)

    def compute(self, step: Step, rendered: Rendered, known: Known, what: str) -> None:
        """Run one step and listen."""
        found = compute(self.on, step, rendered, [known[v] for v in step.reads])
        for value, array in zip(step.writes, found, strict=True):
            if (np.isnan(array) & ~np.isnan(known[value])).any():
                self.faults.append(f"{what}: {value!r} is not written everywhere")
        self.listen(what)

    def plant(self, fault: str) -> None:
        """Run a kernel with a known fault."""
        body = f"{{ size_t i = get_global_id(0); {PLANTED[fault]} }}"
        text = f"kernel void ENTRY(CBUF(float, x), BUF(float, y)) {body}"
        eight = TensorType((8,))
        step = step_of(Sample(Relu(), (eight,)))
        (x,), (y,) = step.reads.values(), step.writes.values()
        launch = Launch(KernelSource(text), (x, y), (8,), (1,))
        compute(self.on, step, Rendered((launch,)), [np.zeros(8, np.float32)])
        self.listen(f"planted {fault}")

    def listen(self, what: str) -> None:
        """Note what was added to the log."""
        said = self.log.news()
        if said:
            self.faults.append(f"{what}:\n{said}")


def key(launch: Launch) -> Launched:
    """What makes a launch another one: its text, its size, and how its operands lie."""
    views = tuple((v.base.type, v.offset, v.shape, v.strides) for v in launch.args)
    return launch.source, launch.global_size, views


def simulator(folder: Path) -> tuple[Machine, Log]:
    """Oclgrind as the only driver of this process; ``folder`` is for its files."""
    log = folder / "log"
    (folder / "oclgrind.icd").write_text(f"{LIBRARY}\n")
    os.environ |= {
        "OCL_ICD_VENDORS": str(folder),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_MAX_ERRORS": "20",  # its search for uninitialised values crashes: left out
        "OCLGRIND_LOG": str(log),
    }
    import pyopencl as cl

    (platform,) = cl.get_platforms()
    return opened(platform.get_devices()[0], guarded=False), Log(log)


def like(machine: Machine, kind: Literal["cpu", "gpu"]) -> Machine:
    """The same device, taken for another kind, so that families choose other settings."""
    info = replace(machine.info, kind=kind, vector_width=8 if kind == "cpu" else 1)
    return replace(machine, info=info)


def walk_all(machine: Machine, log: Log, only: str, extra: int) -> Report:
    """Run the cases whose name has ``only`` in it, in ``extra`` settings beside the usual."""
    walks = [Walk(like(machine, kind), log, extra) for kind in ("cpu", "gpu")]
    with np.errstate(all="ignore"):
        for case in cases():
            for walk in walks:
                if only.lower() in case.name.lower():
                    walk.run(case)
    faults = tuple(fault for walk in walks for fault in walk.faults)
    return Report(sum(len(walk.launched) for walk in walks), faults)


def walk_planted(machine: Machine, log: Log, fault: str) -> Report:
    """Run a kernel with a known fault."""
    walk = Walk(machine, log)
    walk.plant(fault)
    return Report(1, tuple(walk.faults))
