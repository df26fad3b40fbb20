"""A bound plan: write feeds, run, read fetches. No decision and no allocation happens in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgrad.backends.api import Backend, Bound, Lowered
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DtypeError, ShapeError, UnknownNameError
from pocketgrad.ir.core import Value
from pocketgrad.plan.plan import Plan

POISON = 0xFF  # every float made of it is a NaN, every int is -1


class Executable:
    """A plan with its memory. ``uploaded_nbytes`` and ``downloaded_nbytes`` count all traffic.

    ``shared`` maps input names to buffers that another executable already holds: a training step
    and its evaluation work on the same parameters.
    """

    def __init__(
        self,
        plan: Plan,
        lowered: Sequence[Lowered],
        backend: Backend,
        poison: bool = False,
        shared: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan, self.lowered, self.backend = plan, tuple(lowered), backend
        self.uploaded_nbytes = self.downloaded_nbytes = self.allocated_nbytes = 0
        self.buffers: dict[str, Any] = {}
        for name, nbytes in plan.buffers.items():
            if shared and name in shared:
                self.buffers[name] = shared[name]
                continue
            self.buffers[name] = backend.alloc(nbytes)
            self.allocated_nbytes += nbytes
            if nbytes:
                backend.fill(self.buffers[name], POISON if poison and name == "arena" else 0)
        self._inputs = {v.name: v for v in plan.graph.inputs}
        self._outputs = {v.name: v for v in plan.graph.outputs}
        self.feeds = frozenset(self._inputs) - frozenset(shared or ())
        self.bound = backend.bind(self.lowered, self.buffers, plan.slots)

    def repeated(self, inputs: Mapping[str, Any]) -> Bound:
        """The same work over other buffers, which hold batch after batch of these inputs."""
        buffers = {**self.buffers, **inputs}
        return self.backend.bind(self.lowered, buffers, self.plan.slots, tuple(inputs))

    def write(self, name: str, data: Array) -> None:
        """Set an input or state, checking shape and element type."""
        value = self._find(name)
        array = np.asarray(data)
        if array.shape != value.shape:
            raise ShapeError(f"'{name}' has shape {value.shape}, got an array of {array.shape}")
        if array.dtype != value.dtype.numpy:
            raise DtypeError(
                f"'{name}' holds {value.dtype}, got {array.dtype}; convert it with "
                f".astype('{value.dtype}')"
            )
        self.backend.write(self.buffers[self.plan.slots[value].buffer], self._start(value), array)
        self.uploaded_nbytes += array.nbytes

    def run(self, feeds: Mapping[str, Array] | None = None) -> None:
        """One step: write the feeds, enqueue everything."""
        for name, data in (feeds or {}).items():
            self.write(name, data)
        self.bound.run()

    def read(self, name: str) -> Array:
        """An output, input or state as it is after all runs so far."""
        value = self._find(name)
        out = np.empty(value.shape, value.dtype.numpy)
        if out.nbytes:
            buffer = self.buffers[self.plan.slots[self.plan.views[value].base].buffer]
            self.backend.read(buffer, self._start(value), out)
        self.downloaded_nbytes += out.nbytes
        return out

    def _start(self, value: Value) -> int:
        view = self.plan.views[value]
        return self.plan.slots[view.base].offset + view.offset * value.dtype.nbytes

    def _find(self, name: str) -> Value:
        value = self._outputs.get(name, self._inputs.get(name))
        if value is None:
            raise UnknownNameError("input or output", name, [*self._inputs, *self._outputs])
        return value
