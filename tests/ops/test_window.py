"""Window geometry: forward and inverse agree, and the C text says what Python says."""

from __future__ import annotations

import itertools

import pytest

from pocketgrad.base.errors import ShapeError
from pocketgrad.ops.resize import Places
from pocketgrad.ops.window import Adaptive, Window, strided


def all_strided() -> list[Window]:
    found: list[Window] = []
    for size, kernel, stride, before, after, dilation, ceil in itertools.product(
        (1, 2, 7, 8), (1, 2, 3), (1, 2, 3), (0, 1), (0, 2), (1, 2), (False, True)
    ):
        if size + before + after > (kernel - 1) * dilation:
            found.append(strided(size, kernel, stride, (before, after), dilation, ceil))
    return found


WINDOWS = [*all_strided(), *(Adaptive(n, m) for n in (1, 2, 7, 12) for m in (1, 2, 3, 7, 9))]
PLACES = [
    Places(size, count, mode, corners)
    for size in (1, 2, 3, 7, 16)
    for count in (1, 2, 5, 13, 33)
    for mode, corners in (("nearest", False), ("linear", False), ("linear", True))
]


def in_c(text: str, **variables: int) -> int:
    """The value of generated C: its divisions are of ints that are not negative."""
    return int(eval(text.replace("/", "//"), {"max": max, "min": min}, variables))


def read(window: Window, i: int) -> set[int]:
    return {window.start(i) + r * window.step for r in range(*window.taps(i))}


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_taps_stay_inside_and_are_all_there(window: Window) -> None:
    for i in range(window.count):
        every = {window.start(i) + r * window.step for r in range(window.most)}
        assert read(window, i) <= every & set(range(window.size))
        if not isinstance(window, Adaptive):
            assert read(window, i) == every & set(range(window.size))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_readers_are_the_inverse_of_taps(window: Window) -> None:
    for h in range(window.size):
        readers = {i for i in range(*window.readers(h)) if window.tap(h, i) is not None}
        assert readers == {i for i in range(window.count) if h in read(window, i)}


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_the_c_text_of_a_window_says_the_same(window: Window) -> None:
    for i in range(window.count):
        assert in_c(window.c_start("i"), i=i) == window.start(i)
        assert tuple(in_c(t, i=i) for t in window.c_taps("i")) == window.taps(i)
        for padded in (False, True):
            assert in_c(window.c_extent("i", padded), i=i) == window.extent(i, padded)
    for h in range(window.size):
        assert tuple(in_c(t, h=h) for t in window.c_readers("h")) == window.readers(h)


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_readers_of_a_resize_hold_all_that_read(places: Places) -> None:
    low, high, share = places.weights()
    for h in range(places.size):
        first, past = places.readers(h)
        for i in range(places.count):
            reads = (low[i] == h and share[i] < 1) or (high[i] == h and share[i] > 0)
            assert not reads or first <= i < past


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_the_c_text_of_a_resize_says_the_same(places: Places) -> None:
    for i in range(places.count):
        assert in_c(places.c_numerator("i"), i=i) == places.numerator(i)
    for h in range(places.size):
        assert tuple(in_c(t, h=h) for t in places.c_readers("h")) == places.readers(h)


def test_a_window_in_the_padding_alone_is_refused() -> None:
    with pytest.raises(ShapeError, match="reads no element"):
        strided(4, 2, 1, (2, 0)).check("height")
