"""Make the next items in a background thread. The thread ends with the loop that reads them."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from queue import Empty, Queue
from typing import TypeVar

T = TypeVar("T")

THREAD_NAME = "pocketgrad-prefetch"


def prefetched(source: Iterator[T], depth: int) -> Generator[T, None, None]:
    """The items of ``source``, up to ``depth`` of them made ahead; 0 makes each when asked for.

    An exception in ``source`` is raised here, after the items before it. Closing the iterator, or
    leaving its loop, waits for the item in the making and ends the thread.
    """
    if depth == 0:
        yield from source
        return
    ready: Queue[tuple[T] | BaseException | None] = Queue(depth)
    stop = threading.Event()
    thread = threading.Thread(
        target=_produce, args=(source, ready, stop), name=THREAD_NAME, daemon=True
    )
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item[0]
    finally:
        stop.set()
        _drain(ready)  # the producer looks at `stop` before each put: at most one more follows
        thread.join()


def _produce(
    source: Iterator[T], ready: Queue[tuple[T] | BaseException | None], stop: threading.Event
) -> None:
    last: BaseException | None = None
    try:
        for item in source:
            if stop.is_set():
                return
            ready.put((item,))
            del item  # else one batch more than asked for stays alive
    except BaseException as error:  # carried over, whatever it is: the reader would wait for ever
        last = error
    if not stop.is_set():
        ready.put(last)


def _drain(ready: Queue[tuple[T] | BaseException | None]) -> None:
    while True:
        try:
            ready.get_nowait()
        except Empty:
            return
