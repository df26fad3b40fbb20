"""Batches: the same for the same seed, exact at the end of an epoch, resumable at any place."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import pytest

from pocketgrad.base.dtypes import Array
from pocketgrad.data import Batch, Dataset, Loader, arrays
from pocketgrad.data.batch import permutation
from pocketgrad.data.prefetch import THREAD_NAME, prefetched

T = TypeVar("T")


def numbered(n: int) -> Dataset:
    """Samples that are their own row number, so that an order can be read off."""
    return arrays(np.arange(n, dtype=np.float32)[:, None], np.zeros(n, np.int64), classes=2)


def rows_of(batches: list[Batch]) -> list[int]:
    return [int(v) for batch in batches for v in batch.x[: batch.count, 0]]


def each(items: Iterable[T], act: Callable[[T], None]) -> None:
    for item in items:
        act(item)


def prefetch_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == THREAD_NAME]


def test_an_epoch_holds_every_sample_once() -> None:
    assert sorted(rows_of(list(Loader(numbered(23), 5)))) == list(range(23))


def test_the_same_seed_gives_the_same_order() -> None:
    first, second = Loader(numbered(50), 8, seed=3), Loader(numbered(50), 8, seed=3, prefetch=0)
    assert rows_of(list(first)) == rows_of(list(second))


def test_another_epoch_or_seed_gives_another_order() -> None:
    loader = Loader(numbered(50), 8, seed=3)
    orders = [
        rows_of(list(loader)),
        rows_of(list(loader)),
        rows_of(list(Loader(numbered(50), 8, seed=4))),
    ]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]
    assert orders[1] != orders[2]


def test_the_order_is_the_one_of_all_versions() -> None:
    """A saved place in the data means nothing if an update changes the order."""
    assert permutation(10, 7, 2).tolist() == [6, 7, 8, 4, 0, 1, 5, 3, 9, 2]


def test_without_shuffling_the_order_is_that_of_the_data() -> None:
    assert rows_of(list(Loader(numbered(7), 3, shuffle=False))) == list(range(7))


@pytest.mark.parametrize("n", [1, 4, 5, 6, 9, 10, 11])
def test_a_short_last_batch_is_filled_up_with_weight_zero(n: int) -> None:
    batches = list(Loader(numbered(n), 5, shuffle=False))
    assert all(batch.x.shape == (5, 1) and batch.y.shape == (5,) for batch in batches)
    last = batches[-1]
    assert last.weight is not None
    assert last.weight.dtype == np.float32
    assert last.count == (n - 1) % 5 + 1
    assert last.weight.tolist() == [1.0] * last.count + [0.0] * (5 - last.count)
    assert set(last.x[:, 0]) == set(last.x[: last.count, 0])  # the filling repeats its own samples


def test_a_weighted_mean_over_batches_is_the_mean_over_the_data() -> None:
    total = weight = 0.0
    for batch in Loader(numbered(23), 5):
        assert batch.weight is not None
        total += float(batch.x[:, 0] @ batch.weight)
        weight += float(batch.weight.sum())
    assert total / weight == np.arange(23).mean()


def test_drop_last_leaves_the_short_batch_out() -> None:
    loader = Loader(numbered(23), 5, drop_last=True)
    assert len(loader) == 4
    assert [batch.count for batch in loader] == [5, 5, 5, 5]


@pytest.mark.parametrize("taken", range(9))
@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_a_resumed_loader_gives_exactly_what_was_left(taken: int, prefetch: int) -> None:
    """Four batches per epoch: places in the first, between, and in the second and third epoch."""
    whole = Loader(numbered(18), 5, seed=1)
    expected = rows_of([batch for _ in range(4) for batch in whole])

    first = Loader(numbered(18), 5, seed=1, prefetch=prefetch)
    seen = rows_of(take(first, taken))
    state = json.loads(json.dumps(first.state()))
    second = Loader(numbered(18), 5, seed=1, prefetch=prefetch)
    second.restore(state)
    assert seen + rows_of(take(second, 16 - taken)) == expected

    third = Loader(numbered(18), 5, seed=1, start=(state["epoch"], state["index"]))
    assert seen + rows_of(take(third, 16 - taken)) == expected


def take(loader: Loader, n: int) -> list[Batch]:
    """``n`` batches, through as many epochs as it takes, then break off."""
    taken: list[Batch] = []
    while len(taken) < n:
        for batch in loader:
            taken.append(batch)
            if len(taken) == n:
                break
    return taken


def test_the_place_is_that_of_the_consumer_not_of_the_thread() -> None:
    loader = Loader(numbered(20), 5, prefetch=3)
    batches = iter(loader)
    next(batches)
    assert (loader.epoch, loader.index) == (0, 1)


def test_the_place_after_the_last_batch_is_the_next_epoch() -> None:
    loader = Loader(numbered(10), 5)
    places = [(loader.epoch, loader.index) for _ in loader]
    assert places == [(0, 1), (1, 0)]


def test_any_batch_can_be_had_again() -> None:
    loader = Loader(numbered(18), 5, seed=9)
    given = [batch for _ in range(2) for batch in loader]
    for batch in reversed(given):
        again = loader.batch_at(batch.epoch, batch.index)
        assert again.x.tobytes() == batch.x.tobytes()
        assert again.rows is not None
        assert again.rows.tolist() == again.x[:, 0].tolist()
    assert (loader.epoch, loader.index) == (2, 0)


def test_a_batch_unpacks_into_samples_and_targets() -> None:
    x, y = next(iter(Loader(numbered(4), 2)))
    assert x.shape == (2, 1)
    assert y.dtype == np.int32


def test_bytes_stay_bytes() -> None:
    data = arrays(np.zeros((4, 3, 2, 2), np.uint8), np.arange(4))
    batch = Loader(data, 2).batch_at(0, 0)
    assert batch.x.dtype == np.uint8
    assert batch.x.flags.c_contiguous


def test_breaking_off_ends_the_thread() -> None:
    for _ in Loader(numbered(100), 5, prefetch=2):
        break
    assert prefetch_threads() == []


def test_closing_the_iterator_ends_the_thread() -> None:
    batches = iter(Loader(numbered(100), 5, prefetch=2))
    next(batches)
    assert len(prefetch_threads()) == 1
    del batches
    assert prefetch_threads() == []


def test_an_error_in_the_loop_ends_the_thread() -> None:
    def fail(batch: Batch) -> None:
        raise ZeroDivisionError(batch.index)

    with pytest.raises(ZeroDivisionError):
        each(Loader(numbered(100), 5, prefetch=2), fail)
    assert prefetch_threads() == []


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_an_exception_in_the_thread_reaches_the_consumer_in_its_place(depth: int) -> None:
    def source() -> Iterator[int]:
        yield from range(3)
        raise ValueError("bad record")

    seen: list[int] = []
    with pytest.raises(ValueError, match="bad record"):
        each(prefetched(source(), depth), seen.append)
    assert seen == [0, 1, 2]
    assert prefetch_threads() == []


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_source_that_fails_after_the_consumer_left_ends_the_thread(
    depth: int, taken: int
) -> None:
    def source() -> Iterator[int]:
        yield from range(3)
        raise ValueError("nobody reads this")

    items = prefetched(source(), depth)
    for _ in range(taken):
        next(items)
    items.close()
    assert prefetch_threads() == []


def test_no_more_is_made_ahead_than_asked_for() -> None:
    """Depth in the queue, one in the making: memory stays bounded when the consumer is slow."""
    made: list[int] = []
    enough, four = threading.Event(), 4

    def source() -> Iterator[int]:
        for i in range(100):
            made.append(i)
            if len(made) == four:
                enough.set()
            yield i

    items = prefetched(source(), 2)
    next(items)
    assert enough.wait(10)
    items.close()
    assert len(made) <= four + 1  # closing frees one place


def test_lazy_samples_are_read_batch_by_batch() -> None:
    asked: list[int] = []

    class Lazy:
        shape = (10, 1)
        dtype = np.dtype(np.float32)

        def __len__(self) -> int:
            return 10

        def __getitem__(self, rows: Array) -> Array:
            asked.append(len(rows))
            return rows[:, None].astype(np.float32)

    data = Dataset("lazy", Lazy(), np.zeros(10, np.int32), ("a",))
    assert sorted(rows_of(list(Loader(data, 4)))) == list(range(10))
    assert asked == [4, 4, 4]
    assert rows_of(list(Loader(data.hold_out(3).test, 3))) != []
