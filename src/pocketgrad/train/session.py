"""A model on a device: its state, and one bound plan for every kind of step and batch type.

All plans share the state's buffers: an evaluation sees the parameters that training just changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgrad.backends.api import Backend
from pocketgrad.base.dtypes import Array, dtype_of
from pocketgrad.base.errors import DeviceError, ShapeError, UnknownNameError
from pocketgrad.engine.compile import plan_graph
from pocketgrad.engine.executable import Executable
from pocketgrad.ir.core import TensorType
from pocketgrad.train.step import Inputs, Kind, StepSpec, build_graph

NO_FAULT = -1


@dataclass(frozen=True)
class Totals:
    """Sums since the last reset, over samples that count."""

    loss: float
    weight: float
    correct: float

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

    loss_step: int
    label_step: int
    label_position: int

    def __bool__(self) -> bool:
        return self.loss_step != NO_FAULT or self.label_step != NO_FAULT


class Session:
    """Device state of a model, and the steps over it."""

    def __init__(self, spec: StepSpec, backend: Backend, seed: int = 0) -> None:
        self.spec, self.backend = spec, backend
        self.memory: dict[str, Any] = {
            name: backend.alloc(t.nbytes) for name, t in spec.state.items()
        }
        self.state_nbytes = sum(t.nbytes for t in spec.state.values())
        self._plans: dict[tuple[Kind, Inputs], Executable] = {}
        self._micro = 0
        self.traffic = {"uploaded": 0, "downloaded": 0}
        self.last: Executable | None = None  # of the latest training step
        spec.model.initialise(seed)
        self._start(seed)

    def _start(self, seed: int) -> None:
        for name, t in self.spec.state.items():
            self.write_state(name, np.zeros(t.shape, t.dtype.numpy))
        self.write_state("seed", np.asarray(seed, np.int32))
        self.write_state("lr", np.asarray(self.spec.optimizer.lr, np.float32))
        self.reset_faults()
        self.load_model()

    # ---- steps ----------------------------------------------------------------------------------

    def executable(self, kind: Kind, inputs: Inputs) -> Executable:
        """The bound plan of one kind of step; made at its first use."""
        key = (kind, inputs)
        if key not in self._plans:
            plan, lowered = plan_graph(build_graph(self.spec, inputs, kind), self.backend)
            self._plans[key] = Executable(plan, lowered, self.backend, shared=self.memory)
        return self._plans[key]

    def train(self, inputs: Inputs, x: Array, y: Array, weight: Array) -> Executable:
        """One training step; with accumulation, one micro-step, the last of which updates."""
        kind: Kind = "train"
        if self.spec.accumulate > 1:
            self._micro = (self._micro + 1) % self.spec.accumulate
            kind = "apply" if self._micro == 0 else "accumulate"
        self.last = self._run(kind, inputs, {"x": x, "y": y, "weight": weight})
        return self.last

    def evaluate(self, inputs: Inputs, x: Array, y: Array, weight: Array) -> None:
        """Add one batch to the totals, in evaluation mode."""
        self._run("evaluate", inputs, {"x": x, "y": y, "weight": weight})

    def predict(self, inputs: Inputs, x: Array) -> Array:
        """The model's output for one batch, in evaluation mode."""
        ran = self._run("predict", inputs, {"x": x})
        before = ran.downloaded_nbytes
        out = ran.read("prediction")
        self.traffic["downloaded"] += ran.downloaded_nbytes - before
        return out

    def _run(self, kind: Kind, inputs: Inputs, feeds: Mapping[str, Array]) -> Executable:
        executable = self.executable(kind, inputs)
        before = executable.uploaded_nbytes
        executable.run({n: a for n, a in feeds.items() if n in executable.feeds})
        self.traffic["uploaded"] += executable.uploaded_nbytes - before
        return executable

    def loss(self) -> float:
        """The loss of the latest training step."""
        if self.last is None:
            raise DeviceError("there is no loss before the first training step")
        return float(self._read_from(self.last, "loss"))

    # ---- state ----------------------------------------------------------------------------------

    def read_state(self, name: str) -> Array:
        """A state as it is on the device."""
        t = self.spec.state[name]
        out = np.empty(t.shape, t.dtype.numpy)
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
            self.write_state("totals", np.zeros(3, np.float32))
        return Totals(loss, weight, correct)

    def faults(self) -> Faults:
        """What went wrong first, if anything."""
        return Faults(*(int(v) for v in self.read_state("faults")))

    def reset_faults(self) -> None:
        """Let updates go on after a fault was dealt with."""
        self.write_state("faults", np.full(3, NO_FAULT, np.int32))

    # ---- parameters -----------------------------------------------------------------------------

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

    def gradients(self) -> dict[str, Array]:
        """The gradients of the latest training step by parameter name."""
        if self.last is None:
            raise DeviceError("there are no gradients before the first training step")
        found: dict[str, Array] = {}
        for i in range(len(self.spec.shares)):
            flat = self._read_from(self.last, f"gradient.{i}")
            found |= self.spec.packings[f"parameters.{i}"].unpack(flat)
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

    def _read_from(self, executable: Executable, name: str) -> Array:
        before = executable.downloaded_nbytes
        out = executable.read(name)
        self.traffic["downloaded"] += executable.downloaded_nbytes - before
        return out


def inputs_of(
    x: Array, y: Array, mean: tuple[float, ...] = (0.0,), std: tuple[float, ...] = (1.0,)
) -> Inputs:
    """The types of a batch given as arrays."""
    return Inputs(TensorType(x.shape, dtype_of(x)), TensorType(y.shape, dtype_of(y)), mean, std)
