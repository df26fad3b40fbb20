"""Element types: one table of names, sizes, NumPy and OpenCL spellings.

``float64`` exists for gradient checks on the reference backend; devices refuse it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pocketgrad.base.errors import DtypeError

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class DType:
    """An element type; ``cl`` is how a device stores it, ``register`` what it computes in."""

    name: str
    nbytes: int
    cl: str
    register: str

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of the same name."""
        return np.dtype(self.name)

    @property
    def is_float(self) -> bool:
        """Whether gradients can flow through it."""
        return self.name.startswith("float")

    def __repr__(self) -> str:
        return self.name


float16 = DType("float16", 2, "half", "float")
float32 = DType("float32", 4, "float", "float")
float64 = DType("float64", 8, "double", "double")
int32 = DType("int32", 4, "int", "int")
int64 = DType("int64", 8, "long", "long")
uint8 = DType("uint8", 1, "uchar", "int")
bool_ = DType("bool", 1, "uchar", "int")

ALL: dict[str, DType] = {d.name: d for d in (float16, float32, float64, int32, int64, uint8, bool_)}


_BY_NUMPY = {d.numpy: d for d in ALL.values()}


def dtype_of(array: Array) -> DType:
    """The element type of a NumPy array; raises DtypeError for those that have none here."""
    try:
        return _BY_NUMPY[array.dtype]  # asking for the name takes longer than uploading a batch
    except KeyError:
        known = ", ".join(ALL)
        raise DtypeError(
            f"arrays of {array.dtype} are not supported; convert to one of {known}"
        ) from None
