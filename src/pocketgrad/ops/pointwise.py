"""Elementwise operations. ``expr`` is the OpenCL C of one element; kernels are made from it.

In ``expr`` the operands are x, y, z. The generator defines: ``F(c)`` a float literal in the
register type, ``WHERE(c, a, b)``, ``NOT(c)``. Conditions are ints: nonzero is true (all ones in
vectors).
Shapes broadcast as in NumPy; the gradient sums what was broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pocketgrad.base.dtypes import Array, DType, bool_, int32
from pocketgrad.base.errors import DtypeError, ShapeError
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value
from pocketgrad.ops.reduce import unbroadcast
from pocketgrad.ops.source import constant

Operand = Value | float | int | bool


@dataclass(frozen=True)
class Pointwise(Op):
    """Base of all elementwise ops: one expression is shape rule, kernel and cost."""

    expr: ClassVar[str]
    arity: ClassVar[int] = 1
    ranges: ClassVar[tuple[tuple[float, float], ...]] = ((-2.0, 2.0),)
    flops: ClassVar[int] = 1
    integers: ClassVar[bool] = False  # also defined on int32 and int64

    def result(self, dtype: DType) -> DType:
        """Element type of the output, given that of the operands."""
        return dtype

    def scalar(self, *arrays: Any, **none: Any) -> Array:  # Any: subclasses name their operands
        """The same function in NumPy."""
        raise NotImplementedError

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        """Cotangents of the operands, in the shape of the output."""
        raise NotImplementedError

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        if len(types) != self.arity:
            raise ShapeError(f"takes {self.arity} operands, got {len(types)}")
        return (TensorType(broadcast_shapes(*types), self.result(self.common(types))),)

    def common(self, types: tuple[TensorType, ...]) -> DType:
        dtype = types[0].dtype
        if any(t.dtype is not dtype for t in types):
            found = " and ".join(map(str, types))
            raise DtypeError(f"operands have different element types: {found}; cast() one of them")
        if not dtype.is_float and not self.integers:
            raise DtypeError(f"is defined on floats, got {types[0]}; cast() it to float32 first")
        return dtype

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        wide = [a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays]
        with np.errstate(all="ignore"):
            out = np.asarray(self.scalar(*wide))
        half = out.dtype == np.float32 and any(a.dtype == np.float16 for a in arrays)
        return (out.astype(np.float16) if half else out,)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        (ct,) = cts
        if not self.has_gradient or ct is None:
            return (None,) * len(inputs)
        grads = self.partials(inputs, outputs[0], ct)
        return tuple(
            None if g is None else unbroadcast(g, v.shape)
            for g, v in zip(grads, inputs, strict=True)
        )

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        moved = sum(t.nbytes for t in ins) + sum(t.nbytes for t in outs)
        return Cost(self.flops * sum(t.size for t in outs), moved)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for low, high in cls.ranges:
            for shape in ((), (1,), (7,), (3, 33), (2, 0, 4)):
                yield Sample(cls(), (TensorType(shape),) * cls.arity, low, high)
            if cls.arity == 2:
                pairs = (((3, 1), (1, 17)), ((2, 5, 16), (5, 1)), ((64,), ()))
                for a, b in pairs:
                    yield Sample(cls(), (TensorType(a), TensorType(b)), low, high)
        if cls.integers:
            yield Sample(cls(), (TensorType((5, 19), int32),) * cls.arity, ints=(-3, 4))


def broadcast_shapes(*types: TensorType) -> tuple[int, ...]:
    """NumPy's broadcasting rule, with an error that names the shapes."""
    try:
        return tuple(np.broadcast_shapes(*(t.shape for t in types)))
    except ValueError:
        shapes = " and ".join(str(t.shape) for t in types)
        raise ShapeError(
            f"shapes {shapes} do not broadcast; sizes must be equal or 1, aligned at the end"
        ) from None


def lift(x: Operand, like: Value) -> Value:
    """A Python number as a constant of ``like``'s element type; values pass through."""
    return x if isinstance(x, Value) else constant(x, like.dtype)


def pair(x: Operand, y: Operand) -> tuple[Value, Value]:
    """Both as values; a number takes the element type of the other."""
    if isinstance(x, Value):
        return x, lift(y, x)
    if isinstance(y, Value):
        return lift(x, y), y
    raise DtypeError("an elementwise operation needs at least one symbolic value")


def bools(types: tuple[TensorType, ...]) -> DType:
    """bool, if all are."""
    if any(t.dtype is not bool_ for t in types):
        raise DtypeError(f"is defined on bool, got {' and '.join(map(str, types))}; compare first")
    return bool_
