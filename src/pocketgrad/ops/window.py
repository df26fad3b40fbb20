"""Which input positions an output position reads along one axis, and the inverse.

Output ``i`` reads positions ``start(i) + r * step`` for taps r in ``taps(i)``, all in the input.
``c_`` methods give the same as OpenCL C on ints; they divide only what is not negative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import ShapeError


@dataclass(frozen=True)
class Window(ABC):
    """Windows of ``count`` outputs over ``size`` inputs."""

    size: int
    count: int

    @property
    @abstractmethod
    def step(self) -> int:
        """Distance of neighbouring taps."""

    @property
    @abstractmethod
    def most(self) -> int:
        """An upper bound of the number of taps."""

    @abstractmethod
    def start(self, i: int) -> int:
        """Input position of tap 0, which may lie in the padding."""

    @abstractmethod
    def taps(self, i: int) -> tuple[int, int]:
        """First tap inside the input, and one past the last."""

    @abstractmethod
    def extent(self, i: int, padded: bool) -> int:
        """By how many an average divides; ``padded`` counts taps in the padding too."""

    @abstractmethod
    def readers(self, h: int) -> tuple[int, int]:
        """First output that may read input ``h``, and one past the last; see ``tap``."""

    def tap(self, h: int, i: int) -> int | None:
        """The tap with which output ``i`` of ``readers(h)`` reads ``h``; None if between taps."""
        r, between = divmod(h - self.start(i), self.step)
        return None if between else r

    @abstractmethod
    def c_start(self, i: str) -> str:
        """``start`` in C."""

    @abstractmethod
    def c_taps(self, i: str) -> tuple[str, str]:
        """``taps`` in C."""

    @abstractmethod
    def c_extent(self, i: str, padded: bool) -> str:
        """``extent`` in C."""

    @abstractmethod
    def c_readers(self, h: str) -> tuple[str, str]:
        """``readers`` in C."""

    def table(self) -> tuple[Array, Array]:
        """Input position and validity of every [output, tap]; positions outside are 0."""
        positions = np.zeros((self.count, self.most), np.intp)
        valid = np.zeros((self.count, self.most), np.bool_)
        for i in range(self.count):
            taps = np.arange(*self.taps(i))
            positions[i, taps] = self.start(i) + taps * self.step
            valid[i, taps] = True
        return positions, valid

    def cuts(self) -> list[slice]:
        """The input positions that each output reads, as slices."""
        found = []
        for i in range(self.count):
            first, end = (self.start(i) + r * self.step for r in self.taps(i))
            found.append(slice(first, end, self.step))
        return found

    def check(self, axis: str) -> None:
        """Raise ShapeError if a window lies in the padding alone."""
        for i in {0, self.count - 1} if self.count else ():
            first, end = self.taps(i)
            if first >= end:
                raise ShapeError(
                    f"the window of output {i} along {axis} reads no element of the input of size "
                    f"{self.size}; use less padding or a larger kernel"
                )


@dataclass(frozen=True)
class Strided(Window):
    """``kernel`` taps every ``dilation``, windows every ``stride``, after padding on both sides."""

    kernel: int
    stride: int
    before: int
    after: int
    dilation: int

    @property
    def step(self) -> int:
        return self.dilation

    @property
    def most(self) -> int:
        return self.kernel

    def start(self, i: int) -> int:
        return i * self.stride - self.before

    def taps(self, i: int) -> tuple[int, int]:
        start, d = self.start(i), self.dilation
        return max(0, d - 1 - start) // d, min(self.kernel, max(0, self.size + d - 1 - start) // d)

    def extent(self, i: int, padded: bool) -> int:
        if not padded:
            first, end = self.taps(i)
            return end - first
        d = self.dilation
        return min(self.kernel, (self.size + self.after + d - 1 - self.start(i)) // d)

    def readers(self, h: int) -> tuple[int, int]:
        at, reach = h + self.before, (self.kernel - 1) * self.dilation
        first = max(0, at - reach + self.stride - 1) // self.stride
        return first, min(self.count, at // self.stride + 1)

    def c_start(self, i: str) -> str:
        return f"({i} * {self.stride} - {self.before})"

    def c_taps(self, i: str) -> tuple[str, str]:
        start, d = self.c_start(i), self.dilation
        first, end = f"max(0, {d - 1} - {start})", f"max(0, {self.size + d - 1} - {start})"
        return f"({first} / {d})", f"min({self.kernel}, {end} / {d})"

    def c_extent(self, i: str, padded: bool) -> str:
        if not padded:
            first, end = self.c_taps(i)
            return f"({end} - {first})"
        d = self.dilation
        reach = f"({self.size + self.after + d - 1} - {self.c_start(i)})"
        return f"min({self.kernel}, {reach} / {d})"

    def c_readers(self, h: str) -> tuple[str, str]:
        at, reach = f"({h} + {self.before})", (self.kernel - 1) * self.dilation
        first = f"(max(0, {at} - {reach - self.stride + 1}) / {self.stride})"
        return first, f"min({self.count}, {at} / {self.stride} + 1)"


@dataclass(frozen=True)
class Adaptive(Window):
    """Windows that together cover the input evenly; neighbours may overlap by one."""

    @property
    def step(self) -> int:
        return 1

    @property
    def most(self) -> int:
        return -(-self.size // max(1, self.count)) + 1

    def start(self, i: int) -> int:
        return i * self.size // self.count

    def taps(self, i: int) -> tuple[int, int]:
        stop = ((i + 1) * self.size + self.count - 1) // self.count
        return 0, stop - self.start(i)

    def extent(self, i: int, padded: bool) -> int:
        return self.taps(i)[1]

    def readers(self, h: int) -> tuple[int, int]:
        return h * self.count // self.size, ((h + 1) * self.count + self.size - 1) // self.size

    def c_start(self, i: str) -> str:
        return f"({i} * {self.size} / {self.count})"

    def c_taps(self, i: str) -> tuple[str, str]:
        stop = f"(({i} + 1) * {self.size} + {self.count - 1}) / {self.count}"
        return "0", f"({stop} - {self.c_start(i)})"

    def c_extent(self, i: str, padded: bool) -> str:
        return self.c_taps(i)[1]

    def c_readers(self, h: str) -> tuple[str, str]:
        past = f"((({h} + 1) * {self.count} + {self.size - 1}) / {self.size})"
        return f"({h} * {self.count} / {self.size})", past


def strided(
    size: int,
    kernel: int,
    stride: int,
    pads: tuple[int, int],
    dilation: int = 1,
    ceil_mode: bool = False,
    axis: str = "axis",
) -> Strided:
    """The windows of a convolution or pooling along one axis; raises ShapeError if none fits."""
    before, after = pads
    if min(kernel, stride, dilation) < 1 or min(before, after) < 0:
        raise ShapeError(
            f"kernel {kernel}, stride {stride} and dilation {dilation} must be at least 1 and "
            f"padding {pads} at least 0 along {axis}"
        )
    room = size + before + after - (kernel - 1) * dilation - 1
    if room < 0:
        raise ShapeError(
            f"a kernel of {kernel} with dilation {dilation} does not fit into size {size} with "
            f"padding {before} and {after} along {axis}; use a smaller kernel or more padding"
        )
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + before:  # would start in the padding after
        count -= 1
    return Strided(size, count, kernel, stride, before, after, dilation)
