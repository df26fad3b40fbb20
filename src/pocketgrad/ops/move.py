"""Operations that only move elements. All but Pad and Concat are ways to read, without a launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import ShapeError
from pocketgrad.ir.build import emit
from pocketgrad.ir.core import Cost, Op, Sample, TensorType, Value


@dataclass(frozen=True)
class Movement(Op):
    """Base of ops without arithmetic."""

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(0, ins[0].nbytes + outs[0].nbytes)


@dataclass(frozen=True)
class Reshape(Movement):
    """The same elements in row-major order under another shape."""

    shape: tuple[int, ...]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        if prod(self.shape) != x.size:
            raise ShapeError(
                f"cannot view {x} as {self.shape}: {x.size} elements, not {prod(self.shape)}"
            )
        return (TensorType(self.shape, x.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.ascontiguousarray(arrays[0]).reshape(self.shape),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        return (None if cts[0] is None else reshape(cts[0], inputs[0].shape),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for a, b in (((6,), (2, 3)), ((2, 3, 5), (30,)), ((1,), ()), ((0, 3), (3, 0))):
            yield Sample(cls(b), (TensorType(a),))


@dataclass(frozen=True)
class Transpose(Movement):
    """Axes in another order: output axis i is input axis ``axes[i]``."""

    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        if sorted(self.axes) != list(range(len(x.shape))):
            raise ShapeError(f"axes {self.axes} are not an order of the axes of {x}")
        return (TensorType(tuple(x.shape[a] for a in self.axes), x.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.ascontiguousarray(arrays[0].transpose(self.axes)),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        back = tuple(int(a) for a in np.argsort(self.axes))
        return (None if cts[0] is None else transpose(cts[0], back),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        turns = (((3, 5), (1, 0)), ((2, 17, 33), (2, 0, 1)), ((2, 3, 4, 5), (0, 2, 1, 3)))
        for shape, axes in turns:
            yield Sample(cls(axes), (TensorType(shape),))


@dataclass(frozen=True)
class Slice(Movement):
    """From start (inclusive) to stop (exclusive) by step (at least 1) along every axis."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        bounds = list(zip(self.starts, self.stops, self.steps, strict=True))
        if len(bounds) != len(x.shape):
            raise ShapeError(f"got bounds for {len(bounds)} axes of {x}")
        for axis, ((start, stop, step), n) in enumerate(zip(bounds, x.shape, strict=True)):
            if not (0 <= start <= stop <= n and step >= 1):
                raise ShapeError(f"[{start}:{stop}:{step}] on axis {axis} leaves {x}")
        return (TensorType(tuple(len(range(*b)) for b in bounds), x.dtype),)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        cuts = tuple(map(slice, self.starts, self.stops, self.steps))
        return (np.ascontiguousarray(arrays[0][cuts]),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        if cts[0] is None:
            return (None,)
        after = []
        bounds = zip(self.starts, self.steps, cts[0].shape, inputs[0].shape, strict=True)
        for start, step, count, n in bounds:
            covered = start + max(0, (count - 1) * step + 1)
            after.append(n - covered)
        gaps = tuple(s - 1 for s in self.steps)
        return (emit(Pad(self.starts, tuple(after), gaps), cts[0]),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls((2,), (9,), (1,)), (TensorType((10,)),))
        yield Sample(cls((1, 0), (3, 33), (1, 2)), (TensorType((4, 33)),))
        yield Sample(cls((0, 5, 1), (2, 5, 3), (1, 1, 1)), (TensorType((2, 7, 3)),))
        yield Sample(cls((3, 1), (16, 20), (5, 3)), (TensorType((16, 21)),))


@dataclass(frozen=True)
class Flip(Movement):
    """Reverse the order along some axes."""

    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        if any(not 0 <= a < len(x.shape) for a in self.axes):
            raise ShapeError(f"axes {self.axes} are not all in {x}")
        return types

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.ascontiguousarray(np.flip(arrays[0], self.axes)),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        return (None if cts[0] is None else emit(self, cts[0]),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls((0,)), (TensorType((19,)),))
        yield Sample(cls((0, 2)), (TensorType((3, 4, 17)),))


@dataclass(frozen=True)
class Pad(Movement):
    """Surround with ``value``: before, after, and ``gaps`` between neighbours along every axis."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    gaps: tuple[int, ...]
    value: float = 0.0

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (x,) = types
        if not len(self.before) == len(self.after) == len(self.gaps) == len(x.shape):
            raise ShapeError(f"got padding for {len(self.before)} axes of {x}")
        if min((*self.before, *self.after, *self.gaps, 0)) < 0:
            raise ShapeError(f"padding must not be negative, got {self.before} and {self.after}")
        shape = tuple(
            b + max(0, n + (n - 1) * g) + a
            for n, b, a, g in zip(x.shape, self.before, self.after, self.gaps, strict=True)
        )
        return (TensorType(shape, x.dtype),)

    def interior(self, shape: tuple[int, ...]) -> Slice:
        """Where an input of this shape lies in the output."""
        steps = tuple(g + 1 for g in self.gaps)
        stops = tuple(
            b + max(0, (n - 1) * s + 1) for b, n, s in zip(self.before, shape, steps, strict=True)
        )
        return Slice(self.before, stops, steps)

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        from pocketgrad.base.dtypes import dtype_of

        (out,) = self.infer(TensorType(x.shape, dtype_of(x)))
        full = np.full(out.shape, self.value, x.dtype)
        inside = self.interior(x.shape)
        full[tuple(map(slice, inside.starts, inside.stops, inside.steps))] = x
        return (full,)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        return (None if cts[0] is None else emit(self.interior(inputs[0].shape), cts[0]),)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls((1,), (2,), (0,), 1.5), (TensorType((9,)),))
        yield Sample(cls((0, 2), (3, 1), (0, 1)), (TensorType((4, 17)),))
        yield Sample(cls((1, 0, 0), (0, 0, 2), (2, 0, 0)), (TensorType((2, 5, 3)),))
        yield Sample(cls((2,), (1,), (0,)), (TensorType((0,)),))


@dataclass(frozen=True)
class Concat(Op):
    """Join along an axis. The parts are written into their place where their producer can."""

    axis: int

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        first = types[0]
        rank = len(first.shape)
        if not 0 <= self.axis < rank:
            raise ShapeError(f"axis {self.axis} is not in {first}")
        for t in types:
            others = t.shape[: self.axis] + t.shape[self.axis + 1 :]
            if (
                t.dtype is not first.dtype
                or len(t.shape) != rank
                or (others != first.shape[: self.axis] + first.shape[self.axis + 1 :])
            ):
                raise ShapeError(f"cannot join {first} and {t} along axis {self.axis}")
        total = sum(t.shape[self.axis] for t in types)
        shape = (*first.shape[: self.axis], total, *first.shape[self.axis + 1 :])
        return (TensorType(shape, first.dtype),)

    def parts(self, shapes: Sequence[tuple[int, ...]]) -> list[Slice]:
        """Where each input lies in the output."""
        cuts, start = [], 0
        total = sum(s[self.axis] for s in shapes)
        for shape in shapes:
            full = (*shape[: self.axis], total, *shape[self.axis + 1 :])
            starts = tuple(start if i == self.axis else 0 for i in range(len(full)))
            end = start + shape[self.axis]
            stops = tuple(end if i == self.axis else n for i, n in enumerate(full))
            cuts.append(Slice(starts, stops, (1,) * len(full)))
            start = end
        return cuts

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.concatenate(arrays, self.axis),)

    def vjp(
        self, inputs: tuple[Value, ...], outputs: tuple[Value, ...], cts: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        ct = cts[0]
        if ct is None:
            return (None,) * len(inputs)
        return tuple(emit(cut, ct) for cut in self.parts([v.shape for v in inputs]))

    def cost(self, ins: tuple[TensorType, ...], outs: tuple[TensorType, ...]) -> Cost:
        return Cost(0, 2 * outs[0].nbytes)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield Sample(cls(0), (TensorType((3,)), TensorType((0,)), TensorType((17,))))
        yield Sample(cls(1), (TensorType((3, 5)), TensorType((3, 1)), TensorType((3, 33))))
        yield Sample(cls(0), (TensorType((2, 4, 3)), TensorType((1, 4, 3))))


# ---- functions --------------------------------------------------------------------------------


def normal_axis(axis: int, rank: int) -> int:
    """A possibly negative axis as a position; raises ShapeError outside of the rank."""
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} does not exist in a value of {rank} axes")
    return axis % rank


def reshape(x: Value, shape: Sequence[int]) -> Value:
    """The same elements under another shape; one size may be -1."""
    sizes = list(shape)
    if sizes.count(-1) == 1:
        rest = -prod(sizes)
        if rest == 0 or x.type.size % rest:
            raise ShapeError(f"cannot view {x.type} as {tuple(shape)}")
        sizes[sizes.index(-1)] = x.type.size // rest
    return x if tuple(sizes) == x.shape else emit(Reshape(tuple(sizes)), x)


def flatten(x: Value, start: int = 1) -> Value:
    """Join all axes from ``start`` on."""
    return reshape(x, (*x.shape[:start], prod(x.shape[start:])))


def transpose(x: Value, axes: Sequence[int]) -> Value:
    """Axes in another order."""
    order = tuple(normal_axis(a, len(x.shape)) for a in axes)
    return x if order == tuple(range(len(order))) else emit(Transpose(order), x)


def swap(x: Value, a: int, b: int) -> Value:
    """Exchange two axes."""
    order = list(range(len(x.shape)))
    a, b = normal_axis(a, len(order)), normal_axis(b, len(order))
    order[a], order[b] = order[b], order[a]
    return transpose(x, order)


def slice_(x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    """A range along one axis; negative bounds count from the end."""
    axis = normal_axis(axis, len(x.shape))
    start, stop, step = slice(start, stop, step).indices(x.shape[axis])
    stop = max(start, stop)
    starts = tuple(start if i == axis else 0 for i in range(len(x.shape)))
    stops = tuple(stop if i == axis else n for i, n in enumerate(x.shape))
    steps = tuple(step if i == axis else 1 for i in range(len(x.shape)))
    whole = (start, stop, step) == (0, x.shape[axis], 1)
    return x if whole else emit(Slice(starts, stops, steps), x)


def split(x: Value, sizes: int | Sequence[int], axis: int = 0) -> list[Value]:
    """Cut along an axis into parts of one size (the last may be smaller) or of given sizes."""
    axis = normal_axis(axis, len(x.shape))
    total = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, total - start) for start in range(0, total, sizes)]
    if sum(sizes) != total:
        raise ShapeError(f"parts of {list(sizes)} do not add up to {total} along axis {axis}")
    ends = np.cumsum(sizes).tolist()
    return [slice_(x, axis, end - n, end) for n, end in zip(sizes, ends, strict=True)]


def flip(x: Value, *axes: int) -> Value:
    """Reverse along axes."""
    return emit(Flip(tuple(normal_axis(a, len(x.shape)) for a in axes)), x)


def pad(x: Value, widths: Sequence[tuple[int, int]], value: float = 0.0) -> Value:
    """Surround with a number: (before, after) for each axis."""
    before, after = tuple(w[0] for w in widths), tuple(w[1] for w in widths)
    if not any((*before, *after)):
        return x
    return emit(Pad(before, after, (0,) * len(widths), value), x)


def concat(values: Sequence[Value], axis: int = 0) -> Value:
    """Join along an axis."""
    if not values:
        raise ShapeError("nothing to join: concat() got an empty list")
    if len(values) == 1:
        return values[0]
    return emit(Concat(normal_axis(axis, len(values[0].shape))), *values)


def stack(values: Sequence[Value], axis: int = 0) -> Value:
    """Join along a new axis."""
    axis = normal_axis(axis, len(values[0].shape) + 1)
    grown = [reshape(v, (*v.shape[:axis], 1, *v.shape[axis:])) for v in values]
    return concat(grown, axis)
