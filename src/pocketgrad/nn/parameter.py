"""Parameters and buffers: the arrays of a model as the host sees them.

They hold no device memory. While a step is described, a module hands out the symbolic values bound
to them instead (``nn.tracing``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pocketgrad.base.dtypes import Array, DType, dtype_of, float32
from pocketgrad.base.errors import SettingError, ShapeError
from pocketgrad.ir.core import TensorType

Init = Callable[[np.random.Generator, tuple[int, ...]], Array]


class Tensorlike:
    """An array of fixed type that can be read and set."""

    kind = "array"

    def __init__(self, type: TensorType, data: Array | None) -> None:
        self.type = type
        self._data = data

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.type.size

    @property
    def data(self) -> Array:
        """The current numbers; setting converts to the element type and refuses other shapes."""
        if self._data is None:
            raise SettingError(
                f"this {self.kind} of type {self.type} has no numbers yet; "
                "call initialise(seed) on the model first"
            )
        return self._data

    @data.setter
    def data(self, value: ArrayLike) -> None:
        array = np.asarray(value)
        if array.shape != self.shape:
            raise ShapeError(f"a {self.kind} of shape {self.shape} cannot become {array.shape}")
        self._data = np.array(array, self.dtype.numpy, order="C")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type})"


class Parameter(Tensorlike):
    """What training changes, unless ``trainable`` is False.

    Given a shape and an initialiser, its numbers are drawn when the model gets its seed; given an
    array, it starts with that. ``lies``: its axes in the order in which they lie on a device, the
    last running fastest; empty for the usual.
    """

    kind = "parameter"

    def __init__(
        self,
        data: ArrayLike | None = None,
        *,
        shape: Sequence[int] | None = None,
        init: Init | None = None,
        dtype: DType = float32,
        trainable: bool = True,
        lies: tuple[int, ...] = (),
    ) -> None:
        if (data is None) == (shape is None or init is None):
            raise SettingError("a Parameter takes either an array, or shape= and init=")
        given = None if data is None else np.array(data, dtype.numpy, order="C")
        sizes = tuple(shape or ()) if given is None else given.shape
        super().__init__(TensorType(sizes, dtype), given)
        self.init, self.trainable, self.lies = init, trainable, lies

    @property
    def initialised(self) -> bool:
        """Whether it has numbers already."""
        return self._data is not None

    def initialise(self, rng: np.random.Generator) -> None:
        """Draw the first numbers; one made from an array keeps it."""
        if self.init is not None:
            self.data = self.init(rng, self.shape)

    def begin_with(self, init: Init) -> Parameter:
        """Draw with another initialiser, dropping present numbers."""
        self.init, self._data = init, None
        return self


class Buffer(Tensorlike):
    """State that the forward pass keeps, such as running statistics; never trained."""

    kind = "buffer"

    def __init__(self, data: ArrayLike, *, persistent: bool = True) -> None:
        given = np.asarray(data)
        if given.dtype == np.float64:
            given = given.astype(np.float32)
        super().__init__(TensorType(given.shape, dtype_of(given)), np.array(given, order="C"))
        self.persistent = persistent
        self.first = self.data.copy()

    def reset(self) -> None:
        """Return to the first numbers."""
        self.data = self.first
