"""The matrix product, batched, either side transposed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DtypeError, ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value
from pocketgrad.ops.move import reshape
from pocketgrad.ops.reduce import broadcast_to


@dataclass(frozen=True)
class MatMul(Op):
    """a @ b over the last two axes; leading axes are equal. A transposed b is given as [n, k]."""

    transpose_a: bool = False
    transpose_b: bool = False

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        a, b = types
        if a.dtype is not b.dtype or not a.dtype.is_float:
            raise DtypeError(f"takes two floats of one type, got {a} and {b}; cast() one of them")
        if len(a.shape) < 2 or len(a.shape) != len(b.shape) or a.shape[:-2] != b.shape[:-2]:
            raise ShapeError(f"takes equal leading axes and two more, got {a} and {b}")
        m, k, n = self.sizes(a.shape, b.shape)
        other = b.shape[-1] if self.transpose_b else b.shape[-2]
        if k != other:
            side = f"transpose_a={self.transpose_a}, transpose_b={self.transpose_b}"
            raise ShapeError(f"inner sizes {k} and {other} of {a} and {b} differ ({side})")
        return (TensorType((*a.shape[:-2], m, n), a.dtype),)

    def sizes(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, int]:
        """m, k and n of the product."""
        m, k = (a[-1], a[-2]) if self.transpose_a else (a[-2], a[-1])
        return m, k, b[-2] if self.transpose_b else b[-1]

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = arrays
        wide = np.float32 if a.dtype == np.float16 else a.dtype
        left = np.swapaxes(a, -1, -2) if self.transpose_a else a
        right = np.swapaxes(b, -1, -2) if self.transpose_b else b
        return (np.matmul(left.astype(wide), right.astype(wide)).astype(a.dtype),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        (a, b), ct = inputs, cts[0]
        if ct is None:
            return None, None
        ta, tb = self.transpose_a, self.transpose_b
        da = emit(MatMul(tb, True), b, ct) if ta else emit(MatMul(False, not tb), ct, b)
        db = emit(MatMul(True, ta), ct, a) if tb else emit(MatMul(not ta, False), a, ct)
        return da, db

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        _, k, _ = self.sizes(ins[0].shape, ins[1].shape)
        moved = sum(t.nbytes for t in ins) + outs[0].nbytes
        return Cost(2 * k * outs[0].size, moved)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        small = ((1, 1, 1), (3, 5, 7), (16, 16, 16), (4, 0, 3))
        for m, k, n in (*small, (31, 33, 65), (64, 17, 32), (33, 128, 1)):
            for ta in (False, True):
                for tb in (False, True):
                    a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
                    yield Sample(cls(ta, tb), (TensorType(a), TensorType(b)))
        yield Sample(cls(False, True), (TensorType((2, 3, 5, 8)), TensorType((2, 3, 19, 8))))
        yield Sample(cls(True, False), (TensorType((3, 9, 4)), TensorType((3, 9, 17))))


def matmul(a: Value, b: Value, transpose_a: bool = False, transpose_b: bool = False) -> Value:
    """a @ b; leading axes broadcast. A 2-D right side multiplies all leading axes of the left."""
    if len(b.shape) == 2 and len(a.shape) > 2 and not transpose_a:
        flat = emit(MatMul(False, transpose_b), reshape(a, (prod(a.shape[:-1]), a.shape[-1])), b)
        return reshape(flat, (*a.shape[:-1], flat.shape[-1]))
    if min(len(a.shape), len(b.shape)) < 2:
        raise ShapeError(f"a matrix product takes two axes or more, got {a.type} and {b.type}")
    try:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ShapeError(f"leading axes of {a.type} and {b.type} do not broadcast") from None
    a, b = (broadcast_to(v, (*lead, *v.shape[-2:])) for v in (a, b))
    return emit(MatMul(transpose_a, transpose_b), a, b)
