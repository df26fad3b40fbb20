"""A model on a device: its state, and one bound plan for every kind of step and batch type.

All plans share the state's buffers, so that an evaluation sees the parameters training just
changed; they also share one arena and the buffers of equal inputs, so that evaluating needs no
memory beside training's. What a training step left in the arena lasts until another plan runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pocketgrad.backends.api import Backend, Lowered
from pocketgrad.base.dtypes import Array, dtype_of
from pocketgrad.base.errors import DeviceError, ShapeError, UnknownNameError
from pocketgrad.engine.compile import plan_graph
from pocketgrad.engine.executable import Executable
from pocketgrad.ir.core import Graph, TensorType
from pocketgrad.plan.plan import Plan
from pocketgrad.trace.recorder import OFF
from pocketgrad.train.packing import Packing
from pocketgrad.train.resident import Resident
from pocketgrad.train.step import Inputs, Kind, StepSpec, build_graph

NO_FAULT = -1


@dataclass(frozen=True)
class Totals:
    """Sums over samples that count."""

    loss: float = 0.0
    weight: float = 0.0
    correct: float = 0.0

    @property
    def mean_loss(self) -> float:
        """Average loss per sample."""
        return self.loss / self.weight if self.weight else float("nan")

    @property
    def accuracy(self) -> float:
        """Share of samples whose class was predicted."""
        return self.correct / self.weight if self.weight else float("nan")


@dataclass(frozen=True)
class Faults:
    """The first step whose loss was not finite, and the first with a bad label; -1 for none."""

    loss_step: int = NO_FAULT
    label_step: int = NO_FAULT
    label_position: int = NO_FAULT

    def __bool__(self) -> bool:
        return self.loss_step != NO_FAULT or self.label_step != NO_FAULT

    @property
    def step(self) -> int:
        """The step at which the state was frozen."""
        return max(self.loss_step, self.label_step)


class Watch(Protocol):
    """Who profiles: told of each run before its feeds are written and after it was enqueued."""

    def begin(self, executable: Executable, training: bool) -> None:
        """A run begins on the host."""

    def end(self) -> None:
        """It is enqueued."""


class Session:
    """Device state of a model, and the steps over it."""

    def __init__(self, spec: StepSpec, backend: Backend, seed: int = 0) -> None:
        self.spec, self.backend = spec, backend
        self.allocated_nbytes = 0
        self.memory: dict[str, Any] = {
            name: self._alloc(t.nbytes) for name, t in spec.state.items()
        }
        self.micro = 0  # micro-steps since the last update
        self.traffic = {"uploaded": 0, "downloaded": 0}
        self.last: Executable | None = None  # of the latest training step
        self.recorder = OFF  # of what the host does: upload, enqueue, wait, read
        self.watch: Watch | None = None
        self._plans: dict[tuple[Kind, Inputs], tuple[Plan, list[Lowered]]] = {}
        self._bound: dict[tuple[Kind, Inputs], Executable] = {}
        self._inputs: dict[tuple[str, TensorType], Any] = {}
        self._held: dict[int, Array] = {}  # weights as they lie on the device, by batch size
        self._arena: tuple[int, Any] = (0, None)
        self._ran: Executable | None = None
        spec.model.initialise(seed)
        self._start(seed)

    def _start(self, seed: int) -> None:
        for name, t in self.spec.state.items():
            self.write_state(name, np.zeros(t.shape, t.dtype.numpy))
        self.write_state("seed", np.asarray(seed, np.int32))
        self.write_state("lr", np.asarray(self.spec.optimizer.lr, np.float32))
        self.reset_faults()
        self.load_model()

    @property
    def moved_nbytes(self) -> int:
        """All bytes that went to the device and back so far."""
        return sum(self.traffic.values())

    # ---- steps ----------------------------------------------------------------------------------

    def plan(self, kind: Kind, inputs: Inputs) -> tuple[Plan, list[Lowered]]:
        """The plan of one kind of step and how its steps are computed; nothing is allocated."""
        key = (kind, inputs)
        if key not in self._plans:
            self._plans[key] = self._planned(build_graph(self.spec, inputs, kind))
        return self._plans[key]

    def _planned(self, graph: Graph) -> tuple[Plan, list[Lowered]]:
        return plan_graph(graph, self.backend, strict=self.spec.numerics == "strict")

    def executable(self, kind: Kind, inputs: Inputs) -> Executable:
        """The bound plan of one kind of step; made at its first use."""
        key = (kind, inputs)
        if key not in self._bound:
            pair: tuple[Kind, ...] = ("accumulate", "apply")  # they take turns
            together = pair if kind in pair else (kind,)
            arena = max(self.plan(k, inputs)[0].arena_nbytes for k in together)
            self._bound[key] = self._bind(*self.plan(kind, inputs), arena)
        return self._bound[key]

    def bound(self, kind: Kind, inputs: Inputs) -> bool:
        """Whether the executable of that kind of step is there already."""
        return (kind, inputs) in self._bound

    def fetch(self, graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs of any graph over this state, run once."""
        plan, lowered = self._planned(graph)
        executable = self._bind(plan, lowered, plan.arena_nbytes)
        self._run(executable, feeds)
        return [self._read_from(executable, v.name) for v in graph.outputs]

    def train_kind(self) -> Kind:
        """What the next training step is: with accumulation only each last one updates."""
        if self.spec.accumulate == 1:
            return "train"
        return "apply" if self.micro + 1 == self.spec.accumulate else "accumulate"

    def train(self, inputs: Inputs, x: Array, y: Array, weight: Array) -> Executable:
        """One training step; with accumulation, one micro-step, the last of which updates."""
        executable = self.executable(self.train_kind(), inputs)
        self._run(executable, {"x": x, "y": y, "weight": weight}, training=True)
        self.micro = (self.micro + 1) % self.spec.accumulate
        self.last = executable
        return executable

    def upload(self, inputs: Inputs, feeds: Mapping[str, Array]) -> Resident:
        """Batch after batch of x, y and weight into memory of their own on the device."""
        buffers, count = {}, 0
        for name, array in feeds.items():
            count = len(array)
            buffers[name] = self._alloc(array.nbytes)
            self.backend.write(buffers[name], 0, array)
            self.traffic["uploaded"] += array.nbytes
        return Resident(inputs, buffers, count)

    def train_on(self, data: Resident, first: int, count: int) -> None:
        """Training steps on so many resident batches; nothing is waited for or moved."""
        spans = [(first, count)] if self.spec.accumulate == 1 else []
        for start, n in spans or [(first + i, 1) for i in range(count)]:
            kind = self.train_kind()
            executable = self.executable(kind, data.inputs)
            if kind not in data.bound:
                data.bound[kind] = executable.repeated(data.buffers)
            data.bound[kind].run(start, n)
            self.micro = (self.micro + n) % self.spec.accumulate
            self.last = self._ran = executable

    def evaluate(self, inputs: Inputs, x: Array, y: Array, weight: Array) -> None:
        """Add one batch to the totals, in evaluation mode."""
        self._run(self.executable("evaluate", inputs), {"x": x, "y": y, "weight": weight})

    def predict(self, inputs: Inputs, x: Array) -> Array:
        """The model's output for one batch, in evaluation mode."""
        executable = self.executable("predict", inputs)
        self._run(executable, {"x": x})
        return self._read_from(executable, "prediction")

    def loss(self) -> float:
        """The loss of the latest training step."""
        return float(self._of_last("loss"))

    def gradients(self) -> dict[str, Array]:
        """The gradients of the latest training step by parameter name."""
        found: dict[str, Array] = {}
        for i in range(len(self.spec.shares)):
            flat = self._of_last(f"gradient.{i}")
            found |= self.spec.packings[f"parameters.{i}"].unpack(flat)
        return found

    def _bind(self, plan: Plan, lowered: Sequence[Lowered], arena_nbytes: int) -> Executable:
        shared = dict(self.memory)
        for value in plan.graph.inputs:
            if value.name in shared:
                continue
            key = (value.name, value.type)
            if key not in self._inputs:
                self._inputs[key] = self._alloc(value.type.nbytes)
            shared[value.name] = self._inputs[key]
        if "arena" in plan.buffers:
            if arena_nbytes > self._arena[0]:
                self._arena = (arena_nbytes, self._alloc(arena_nbytes))
            shared["arena"] = self._arena[1]
        return Executable(plan, lowered, self.backend, shared=shared)

    def _alloc(self, nbytes: int) -> Any:
        self.allocated_nbytes += nbytes
        return self.backend.alloc(nbytes)

    def _run(
        self, executable: Executable, feeds: Mapping[str, Array], training: bool = False
    ) -> None:
        before = executable.uploaded_nbytes
        if self.watch is not None:
            self.watch.begin(executable, training)
        for value in executable.plan.graph.inputs:
            if value.name in feeds:
                self._feed(executable, value.name, feeds[value.name])
        with self.recorder.timed("enqueue"):
            executable.run()
        if self.watch is not None:
            self.watch.end()
        self._ran = executable
        self.traffic["uploaded"] += executable.uploaded_nbytes - before

    def _feed(self, executable: Executable, name: str, array: Array) -> None:
        """Upload; weights are nearly always the same ones as before, which lie there already."""
        if name == "weight":
            held = self._held.get(len(array))
            if held is not None and np.array_equal(held, array):
                return
            self._held[len(array)] = array.copy()
        with self.recorder.timed("upload", args={"name": name, "nbytes": array.nbytes}):
            executable.write(name, array)

    def _of_last(self, name: str) -> Array:
        if self.last is None:
            raise DeviceError("there is no loss and no gradient before the first training step")
        if self._ran is not self.last:
            raise DeviceError(
                "the memory of the latest training step was used again, by an evaluation or "
                "prediction; read loss and gradients right after the step"
            )
        return self._read_from(self.last, name)

    def _read_from(self, executable: Executable, name: str) -> Array:
        before = executable.downloaded_nbytes
        self._wait()
        with self.recorder.timed("read", args={"name": name}):
            out = executable.read(name)
        self.traffic["downloaded"] += executable.downloaded_nbytes - before
        return out

    def _wait(self) -> None:
        """Only to tell waiting for the device from reading, when somebody looks."""
        if self.recorder.on:
            with self.recorder.timed("wait"):
                self.backend.finish()

    # ---- state ----------------------------------------------------------------------------------

    def read_state(self, name: str) -> Array:
        """A state as it is on the device."""
        t = self.spec.state[name]
        out = np.empty(t.shape, t.dtype.numpy)
        self._wait()
        with self.recorder.timed("read", args={"name": name}):
            self.backend.read(self.memory[name], 0, out)
        self.traffic["downloaded"] += out.nbytes
        return out

    def write_state(self, name: str, array: Array) -> None:
        """Set a state on the device."""
        t = self.spec.state[name]
        if array.shape != t.shape or dtype_of(array) is not t.dtype:
            raise ShapeError(f"the state '{name}' is {t}, got {array.dtype}{list(array.shape)}")
        self.backend.write(self.memory[name], 0, array)
        self.traffic["uploaded"] += array.nbytes

    def totals(self, reset: bool = True) -> Totals:
        """Sums since the last reset."""
        loss, weight, correct = (float(v) for v in self.read_state("totals"))
        if reset:
            self.set_totals(Totals())
        return Totals(loss, weight, correct)

    def set_totals(self, totals: Totals) -> None:
        """Let the sums go on from these."""
        numbers = (totals.loss, totals.weight, totals.correct)
        self.write_state("totals", np.array(numbers, np.float32))

    def faults(self) -> Faults:
        """What went wrong first, if anything."""
        return Faults(*(int(v) for v in self.read_state("faults")))

    def reset_faults(self) -> None:
        """Let updates go on after a fault was dealt with."""
        self.write_state("faults", np.full(3, NO_FAULT, np.int32))

    def rewind(self, step: int) -> None:
        """Go on from the state that was frozen at ``step``, as if it had not been tried."""
        self.reset_faults()
        self.write_state("step", np.asarray(step, np.int32))
        self.micro = 0
        for name, t in self.spec.state.items():
            if name.startswith("accumulated."):
                self.write_state(name, np.zeros(t.shape, t.dtype.numpy))

    # ---- arrays by name -------------------------------------------------------------------------

    def load_model(self) -> None:
        """Copy the model's arrays to the device."""
        arrays = {name: tensor.data for name, tensor in self.spec.model.tensors()}
        for name, packing in self.spec.packings.items():
            dtype = self.spec.state[name].dtype.name
            self.write_state(name, packing.pack(arrays, dtype))

    def store_model(self) -> None:
        """Copy the device's arrays back into the model."""
        tensors = dict(self.spec.model.tensors())
        for name, array in self.arrays().items():
            tensors[name].data = array

    def arrays(self) -> dict[str, Array]:
        """All parameters and buffers by name, as they are on the device."""
        found: dict[str, Array] = {}
        for name, packing in self.spec.packings.items():
            found |= packing.unpack(self.read_state(name))
        return found

    def set_array(self, name: str, array: Array) -> None:
        """Set one parameter or buffer by name."""
        for state, packing in self.spec.packings.items():
            if name in packing.offsets:
                flat = self.read_state(state)
                part = packing.part(flat, name)
                if part.shape != array.shape:
                    raise ShapeError(f"'{name}' has shape {part.shape}, got {array.shape}")
                part[...] = array
                self.write_state(state, flat)
                return
        known = [n for p in self.spec.packings.values() for n in p.offsets]
        raise UnknownNameError("parameter or buffer", name, known)

    def export(self) -> dict[str, Array]:
        """All state by names that hold in any packing: model/NAME, STATE/NAME, session/SCALAR."""
        found = {f"model/{name}": array for name, array in self.arrays().items()}
        for name in self.spec.state:
            if name in self.spec.packings:
                continue
            packing = self._packing_beside(name)
            if packing is None:
                found[f"session/{name}"] = self.read_state(name)
            else:
                stem = name.rpartition(".")[0]
                parts = packing.unpack(self.read_state(name))
                found |= {f"{stem}/{n}": array for n, array in parts.items()}
        found["session/micro"] = np.asarray(self.micro, np.int32)
        return found

    def restore(self, exported: Mapping[str, Array]) -> None:
        """Take over exported state; optimizer state it lacks starts at zero."""
        arrays = {n.removeprefix("model/"): a for n, a in exported.items()}
        for name, t in self.spec.state.items():
            dtype = t.dtype.name
            packing = self._packing_beside(name)
            if name in self.spec.packings:
                self.write_state(name, self.spec.packings[name].pack(arrays, dtype))
            elif packing is None:
                self.write_state(name, exported[f"session/{name}"])
            else:
                stem = name.rpartition(".")[0]
                kept = {
                    n: exported.get(f"{stem}/{n}", np.zeros(shape, dtype))
                    for n, shape in packing.shapes.items()
                }
                self.write_state(name, packing.pack(kept, dtype))
        self.micro = int(exported["session/micro"]) % self.spec.accumulate

    def _packing_beside(self, name: str) -> Packing | None:
        """The layout of optimizer state: that of the parameters it belongs to."""
        stem, dot, share = name.rpartition(".")
        return self.spec.packings.get(f"parameters.{share}") if dot and stem else None
