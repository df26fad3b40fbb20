"""Named arrays in one flat array: parameters, gradients and optimizer state share this layout.

Arrays whose size is a multiple of 16 elements come first, so that nearly all of them start at a
vector boundary without any padding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import ShapeError, UnknownNameError
from pocketgrad.ir.core import Value
from pocketgrad.ops.move import concat, reshape, slice_, transpose

VECTOR = 16
# Weights of convolutions, [K, C, R, S], lie in the order R S C K: kernels read vectors along K.
STORED = {4: (2, 3, 1, 0)}


@dataclass(frozen=True)
class Packing:
    """Where each named array lies in the flat one."""

    offsets: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    size: int
    lies: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @staticmethod
    def of(
        entries: Iterable[tuple[str, tuple[int, ...]]],
        lies: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Packing:
        """A layout for arrays by name and shape; ``lies``: the order of axes of some."""
        ordered = sorted(entries, key=lambda e: prod(e[1]) % VECTOR != 0)
        offsets, at = {}, 0
        for name, shape in ordered:
            offsets[name] = at
            at += prod(shape)
        return Packing(offsets, dict(ordered), at, lies or {})

    def _stored(self, name: str) -> tuple[int, ...]:
        """The axes of an array in the order in which they lie, the last one running fastest."""
        rank = len(self.shapes[name])
        return self.lies.get(name, STORED.get(rank, tuple(range(rank))))

    def views(self, flat: Value) -> dict[str, Value]:
        """The arrays as symbolic views of the flat value."""
        return {name: self._view(flat, name) for name in self.offsets}

    def _view(self, flat: Value, name: str) -> Value:
        at, shape = self.offsets[name], self.shapes[name]
        axes = self._stored(name)
        lying = reshape(slice_(flat, 0, at, at + prod(shape)), [shape[a] for a in axes])
        return transpose(lying, [axes.index(a) for a in range(len(axes))])

    def join(self, values: Mapping[str, Value]) -> Value:
        """Symbolic arrays as one flat value."""
        lying = (transpose(values[n], self._stored(n)) for n in self.shapes)
        return concat([reshape(array, (-1,)) for array in lying])

    def pack(self, arrays: Mapping[str, Array], dtype: str) -> Array:
        """NumPy arrays as one flat array."""
        flat = np.empty(self.size, dtype)
        for name, at in self.offsets.items():
            shape = self.shapes[name]
            if arrays[name].shape != shape:
                raise ShapeError(f"'{name}' has shape {shape}, got {arrays[name].shape}")
            flat[at : at + prod(shape)] = arrays[name].transpose(self._stored(name)).reshape(-1)
        return flat

    def unpack(self, flat: Array) -> dict[str, Array]:
        """The flat array as copies by name."""
        return {name: self.part(flat, name).copy() for name in self.offsets}

    def part(self, flat: Array, name: str) -> Array:
        """One array as a view of the flat NumPy array."""
        if name not in self.offsets:
            raise UnknownNameError("parameter", name, self.offsets)
        at, shape = self.offsets[name], self.shapes[name]
        axes = self._stored(name)
        lying = flat[at : at + prod(shape)].reshape([shape[a] for a in axes])
        return lying.transpose([axes.index(a) for a in range(len(axes))])
