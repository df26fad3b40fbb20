"""Reading by index: rows of a table, elements along an axis, and one-hot vectors.

An index out of range reads zero and receives nothing, on every backend; the gradients sum what was
read more than once in the order of the indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array, DType, float32, int32, int64
from pocketgrad.base.errors import DtypeError, ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value
from pocketgrad.ops.arithmetic import cast
from pocketgrad.ops.compare import eq
from pocketgrad.ops.move import normal_axis, reshape
from pocketgrad.ops.source import iota

# table, indices
_ROWS = (((1, 1), (1,)), ((7, 5), (2, 9)), ((33, 17), (3, 1, 4)), ((5, 16), ()), ((4, 3), (0,)))

# axis, x, indices
_ALONG = (
    (0, (7,), (3,)),
    (1, (3, 5), (3, 9)),
    (0, (6, 2, 3), (1, 2, 3)),
    (2, (2, 3, 17), (2, 3, 4)),
)


@dataclass(frozen=True)
class Read(Op):
    """Base of reading without arithmetic: every result is moved in and out."""

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(0, 2 * outs[0].nbytes + ins[1].nbytes)


@dataclass(frozen=True)
class Take(Read):
    """Rows of a table [V,…] at indices of any shape."""

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        table, index = types
        if not table.shape:
            raise ShapeError(f"takes rows of a table, got {table}")
        whole(index)
        return (TensorType((*index.shape, *table.shape[1:]), table.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        table, index = arrays
        inside = (index >= 0) & (index < len(table))
        padded = np.concatenate([table, np.zeros_like(table, shape=(1, *table.shape[1:]))])
        return (padded[np.where(inside, index, len(table))],)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        table, index = inputs
        return None if cts[0] is None else emit(TakeGrad(table.shape[0]), index, cts[0]), None

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for table, index in _ROWS:
            for dtype in (int32, int64):
                ins = TensorType(table), TensorType(index, dtype)
                yield Sample(cls(), ins, ints=(-1, table[0] + 1))


@dataclass(frozen=True)
class TakeGrad(Op):
    """A table of ``rows`` rows, each the sum of the cotangents whose index it is."""

    rows: int

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        index, ct = types
        whole(index)
        if ct.shape[: len(index.shape)] != index.shape or not ct.dtype.is_float:
            raise ShapeError(f"takes a float row for every index, got {ct} for {index}")
        return (TensorType((self.rows, *ct.shape[len(index.shape) :]), ct.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        index, ct = arrays
        inside = (index >= 0) & (index < self.rows)
        wide = np.float32 if ct.dtype == np.float16 else ct.dtype
        table = np.zeros((self.rows, *ct.shape[index.ndim :]), wide)
        np.add.at(table, index[inside], ct[inside])
        return (table.astype(ct.dtype),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        return None, None if cts[0] is None else emit(Take(), cts[0], inputs[0])

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(ins[1].size, sum(t.nbytes for t in ins) + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for table, index in _ROWS:
            ins = TensorType(index, int32), TensorType((*index, *table[1:]))
            yield Sample(cls(table[0]), ins, ints=(-1, table[0] + 1))


@dataclass(frozen=True)
class Gather(Read):
    """y[…,i,…] = x[…,index[…,i,…],…] along one axis; the other axes are those of the index."""

    axis: int

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        x, index = types
        whole(index)
        aligned(x.shape, index.shape, self.axis)
        return (TensorType(index.shape, x.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        x, index = arrays
        inside = (index >= 0) & (index < x.shape[self.axis])
        if not x.shape[self.axis]:
            return (np.zeros(index.shape, x.dtype),)
        found = np.take_along_axis(x, np.where(inside, index, 0), self.axis)
        return (np.where(inside, found, np.zeros((), x.dtype)),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        x, index = inputs
        grad = GatherGrad(self.axis, x.shape[self.axis])
        return None if cts[0] is None else emit(grad, index, cts[0]), None

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for axis, x, index in _ALONG:
            for dtype in (int32, int64):
                ins = TensorType(x), TensorType(index, dtype)
                yield Sample(cls(axis), ins, ints=(-1, x[axis] + 1))


@dataclass(frozen=True)
class GatherGrad(Op):
    """Along the axis, of length ``size``, each element sums the cotangents that read it."""

    axis: int
    size: int

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        index, ct = types
        whole(index)
        if ct.shape != index.shape or not ct.dtype.is_float:
            raise ShapeError(f"takes a float for every index, got {ct} for {index}")
        shape = (*ct.shape[: self.axis], self.size, *ct.shape[self.axis + 1 :])
        aligned(shape, index.shape, self.axis)
        return (TensorType(shape, ct.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        index, ct = (np.moveaxis(a, self.axis, 0) for a in arrays)
        wide = np.float32 if ct.dtype == np.float16 else ct.dtype
        dx = np.zeros((self.size, *ct.shape[1:]), wide)
        at = np.nonzero((index >= 0) & (index < self.size))
        np.add.at(dx, (index[at], *at[1:]), ct[at])
        return (np.ascontiguousarray(np.moveaxis(dx, 0, self.axis)).astype(ct.dtype),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        return None, None if cts[0] is None else emit(Gather(self.axis), cts[0], inputs[0])

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(ins[1].size, sum(t.nbytes for t in ins) + outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for axis, x, index in _ALONG:
            ins = TensorType(index, int32), TensorType(index)
            yield Sample(cls(axis, x[axis]), ins, ints=(-1, x[axis] + 1))


def whole(index: TensorType) -> None:
    """Whole numbers as indices, or an error."""
    if index.dtype not in (int32, int64):
        raise DtypeError(f"an index is int32 or int64, got {index}; cast() it")


def aligned(x: tuple[int, ...], index: tuple[int, ...], axis: int) -> None:
    """Both agree in all axes but one, or an error."""
    if not 0 <= axis < len(x) or x[:axis] + x[axis + 1 :] != index[:axis] + index[axis + 1 :]:
        raise ShapeError(f"values {x} and indices {index} differ in more than axis {axis}")


# ---- functions --------------------------------------------------------------------------------


def embedding(table: Value, index: Value) -> Value:
    """Rows of a table at integer positions."""
    return emit(Take(), table, index)


def gather(x: Value, index: Value, axis: int) -> Value:
    """Elements along an axis at integer positions; other axes agree."""
    return emit(Gather(normal_axis(axis, len(x.shape))), x, index)


def one_hot(index: Value, classes: int, dtype: DType = float32, axis: int = -1) -> Value:
    """1 where a new axis of length ``classes`` counts to the index, else 0."""
    axis = normal_axis(axis, len(index.shape) + 1)
    column = reshape(index, (*index.shape[:axis], 1, *index.shape[axis:]))
    counter = tuple(classes if i == axis else 1 for i in range(len(column.shape)))
    return cast(eq(column, iota(counter, axis, index.dtype)), dtype)
