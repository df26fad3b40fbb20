"""Symbolic values with Python's operators: what a module's forward() gets and returns."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgrad.ir.core import Value
from pocketgrad.ops import arithmetic, compare, extremes, linalg, move, reduce, transcendental
from pocketgrad.ops.pointwise import Operand


class Tensor(Value):
    """A symbolic array. It has a shape and an element type, and no numbers until a step runs."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Value:
        return arithmetic.add(self, other)

    def __radd__(self, other: Operand) -> Value:
        return arithmetic.add(other, self)

    def __sub__(self, other: Operand) -> Value:
        return arithmetic.sub(self, other)

    def __rsub__(self, other: Operand) -> Value:
        return arithmetic.sub(other, self)

    def __mul__(self, other: Operand) -> Value:
        return arithmetic.mul(self, other)

    def __rmul__(self, other: Operand) -> Value:
        return arithmetic.mul(other, self)

    def __truediv__(self, other: Operand) -> Value:
        return arithmetic.div(self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return arithmetic.div(other, self)

    def __pow__(self, other: Operand) -> Value:
        return transcendental.power(self, other)

    def __neg__(self) -> Value:
        return arithmetic.neg(self)

    def __matmul__(self, other: Value) -> Value:
        return linalg.matmul(self, other)

    def __gt__(self, other: Operand) -> Value:
        return compare.gt(self, other)

    def __ge__(self, other: Operand) -> Value:
        return compare.ge(self, other)

    def __lt__(self, other: Operand) -> Value:
        return compare.lt(self, other)

    def __le__(self, other: Operand) -> Value:
        return compare.le(self, other)

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self!r} has no truth value while the step is being described; use ops.where()"
        )

    def reshape(self, *shape: int) -> Value:
        """The same elements under another shape; one size may be -1."""
        return move.reshape(self, shape)

    def transpose(self, a: int, b: int) -> Value:
        """Exchange two axes."""
        return move.swap(self, a, b)

    def permute(self, *axes: int) -> Value:
        """Axes in another order."""
        return move.transpose(self, axes)

    def flatten(self, start: int = 0) -> Value:
        """Join all axes from ``start`` on."""
        return move.flatten(self, start)

    def sum(self, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
        """Sum along axes (all by default)."""
        return reduce.sum_(self, axes, keepdims)

    def mean(self, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
        """Average along axes (all by default)."""
        return extremes.mean(self, axes, keepdims)
