"""Times of OpenCL events, from a driver made up for the test: no clock, no device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pocketgrad.backends import events
from pocketgrad.backends.events import QUEUE, EventTiming
from pocketgrad.base.errors import DeviceError


class RefusedError(Exception):
    """What pyopencl raises."""


def event(queued: int, submit: int, start: int, end: int) -> Any:
    profile = SimpleNamespace(queued=queued, submit=submit, start=start, end=end)
    return SimpleNamespace(profile=profile, wait=lambda: None)


class Driver:
    """pyopencl and a backend in one; markers give the events it was told."""

    Error = RefusedError
    command_queue_properties = SimpleNamespace(PROFILING_ENABLE=2)
    name, context, device = "made-up:0", None, None

    def __init__(self, markers: list[Any], refuses: bool = False) -> None:
        self.markers, self.refuses = markers, refuses
        self.queue: Any = "plain"
        self.timing: EventTiming | None = None

    def CommandQueue(self, context: Any, properties: int) -> Any:  # noqa: N802  # pyopencl's name
        if self.refuses:
            raise RefusedError("INVALID_QUEUE_PROPERTIES")
        return SimpleNamespace(properties=properties, flush=lambda: None)

    def enqueue_marker(self, queue: Any) -> Any:
        return self.markers.pop(0)

    def finish(self) -> None:
        """Nothing is pending."""


def test_a_queue_with_times_exists_only_while_they_are_wanted() -> None:
    driver = Driver([])
    timing = EventTiming(driver, driver)
    assert driver.queue.properties == 2
    timing.keep("launch", 3, event(10, 20, 30, 40))
    timing.on = False
    timing.keep("launch", 4, event(1, 2, 3, 4))
    assert [tuple(r) for r in timing.take()] == [("launch", 3, QUEUE, 10, 20, 30, 40)]
    timing.close()
    assert driver.queue == "plain"
    assert driver.timing is None


def test_a_driver_that_refuses_is_named() -> None:
    driver = Driver([], refuses=True)
    with pytest.raises(DeviceError, match=r"made-up:0 gives no launch times \(INVALID"):
        EventTiming(driver, driver)


def test_the_narrowest_of_several_ties_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tie reads the clock before the call, after it, and after the wait."""
    reads = iter([0, 90, 200, 300, 310, 400, 500, 560, 600, 700, 790, 800, 900, 990, 999])
    monkeypatch.setattr(events, "now_ns", lambda: next(reads))
    driver = Driver(
        [event(1000 + t, 1001 + t, 1002 + t, 1003 + t) for t in (5, 305, 505, 705, 905)]
    )
    (tie,) = EventTiming(driver, driver).ties().values()
    assert (tie.device_ns, tie.before_ns, tie.after_ns) == (1305, 300, 310)


@pytest.mark.parametrize("queued", [0, 2000, -5])
def test_a_queueing_time_that_cannot_be_is_not_used(
    monkeypatch: pytest.MonkeyPatch, queued: int
) -> None:
    """Zero, after the end, or longer before it than the host waited: the end is tied instead."""
    reads = iter([100, 110, 180] * 5)
    monkeypatch.setattr(events, "now_ns", lambda: next(reads))
    driver = Driver([event(queued, 1001, 1002, 1003)] * 5)
    (tie,) = EventTiming(driver, driver).ties().values()
    assert (tie.device_ns, tie.before_ns, tie.after_ns) == (1003, 100, 180)
