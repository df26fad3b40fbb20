"""Named arrays in one flat array: parameters, gradients and optimizer state share this layout.

Arrays whose size is a multiple of 16 elements come first, so that nearly all of them start at a
vector boundary without any padding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import ShapeError, UnknownNameError
from pocketgrad.ir.core import Value
from pocketgrad.ops.move import concat, reshape, slice_

VECTOR = 16


@dataclass(frozen=True)
class Packing:
    """Where each named array lies in the flat one."""

    offsets: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    size: int

    @staticmethod
    def of(entries: Iterable[tuple[str, tuple[int, ...]]]) -> Packing:
        """A layout for arrays by name and shape."""
        ordered = sorted(entries, key=lambda e: prod(e[1]) % VECTOR != 0)
        offsets, at = {}, 0
        for name, shape in ordered:
            offsets[name] = at
            at += prod(shape)
        return Packing(offsets, dict(ordered), at)

    def views(self, flat: Value) -> dict[str, Value]:
        """The arrays as symbolic views of the flat value."""
        return {
            name: reshape(slice_(flat, 0, at, at + prod(self.shapes[name])), self.shapes[name])
            for name, at in self.offsets.items()
        }

    def join(self, values: Mapping[str, Value]) -> Value:
        """Symbolic arrays as one flat value."""
        return concat([reshape(values[name], (-1,)) for name in self.offsets])

    def pack(self, arrays: Mapping[str, Array], dtype: str) -> Array:
        """NumPy arrays as one flat array."""
        flat = np.empty(self.size, dtype)
        for name, at in self.offsets.items():
            shape = self.shapes[name]
            if arrays[name].shape != shape:
                raise ShapeError(f"'{name}' has shape {shape}, got {arrays[name].shape}")
            flat[at : at + prod(shape)] = arrays[name].reshape(-1)
        return flat

    def unpack(self, flat: Array) -> dict[str, Array]:
        """The flat array as copies by name."""
        return {name: self.part(flat, name).copy() for name in self.offsets}

    def part(self, flat: Array, name: str) -> Array:
        """One array as a view of the flat NumPy array."""
        if name not in self.offsets:
            raise UnknownNameError("parameter", name, self.offsets)
        at, shape = self.offsets[name], self.shapes[name]
        return flat[at : at + prod(shape)].reshape(shape)
