"""The data types of a program: a pure function from inputs to outputs, nodes in order.

Nothing here knows which operations exist (``ops``) or how they run (``backends``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from typing import Any, ClassVar

from pocketgrad.base.dtypes import Array, DType, float32
from pocketgrad.base.errors import NoGradientError


@dataclass(frozen=True, slots=True)
class TensorType:
    """Logical shape and element type of a value."""

    shape: tuple[int, ...]
    dtype: DType = float32

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a dense copy."""
        return self.size * self.dtype.nbytes

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Value:
    """One array in a graph. Compared by identity; the name is for people and printed text."""

    __slots__ = ("name", "type")

    def __init__(self, type: TensorType, name: str) -> None:
        self.type, self.name = type, name

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What an operation must do at least: arithmetic operations, and bytes read and written."""

    flops: int
    nbytes: int


@dataclass(frozen=True)
class Sample:
    """A test case of an op: input types, and the range that keeps float inputs away from kinks.

    ``ints`` bounds integer inputs (for indices: the legal range).
    """

    op: Op
    ins: tuple[TensorType, ...]
    low: float = -2.0
    high: float = 2.0
    ints: tuple[int, int] = (0, 5)


@dataclass(frozen=True)
class Op:
    """An operation. Subclasses are frozen dataclasses whose fields are the attributes.

    No ABC: planning asks a million times what an op is, and those answer ten times more slowly.
    """

    has_gradient: ClassVar[bool] = True

    @classmethod
    def label(cls) -> str:
        """The op's name in text and traces: snake_case of the class name."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def attributes(self) -> dict[str, Any]:
        """Field names and values, in order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        """Output types; raises ShapeError or DtypeError naming what does not fit."""
        raise NotImplementedError

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        """What the op means, in NumPy."""
        raise NotImplementedError

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        """Emit the cotangents of the inputs, given those of the outputs (None: not needed)."""
        raise NoGradientError(f"{self.label()} has no gradient; stop it with detach() before")

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        """Least arithmetic and traffic; the default counts one operation per output element."""
        moved = sum(t.nbytes for t in ins) + sum(t.nbytes for t in outs)
        return Cost(sum(t.size for t in outs), moved)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        """Test cases that straddle the edges."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Node:
    """An op applied. ``scope`` is the layer path, ``phase`` forward, backward or update."""

    op: Op
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    scope: str = ""
    phase: str = "forward"

    @property
    def cost(self) -> Cost:
        """The op's cost at these types."""
        return self.op.cost(tuple(v.type for v in self.inputs), tuple(v.type for v in self.outputs))


@dataclass(frozen=True, eq=False)
class Graph:
    """A pure function. ``updates`` maps a donated input to the value that replaces it."""

    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    updates: Mapping[Value, Value]

    @cached_property
    def producers(self) -> dict[Value, Node]:
        """The node that computes each value."""
        return {v: node for node in self.nodes for v in node.outputs}

    @cached_property
    def consumers(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, in order."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for v in dict.fromkeys(node.inputs):
                found.setdefault(v, []).append(node)
        return found

    @property
    def results(self) -> tuple[Value, ...]:
        """All that must be there after a run: outputs and the new values of donated inputs."""
        return tuple(dict.fromkeys((*self.outputs, *self.updates.values())))
