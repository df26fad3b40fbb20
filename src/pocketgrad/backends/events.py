"""When OpenCL commands ran: events of a queue that keeps times, and that device's clock on ours.

The queue with times exists only while somebody profiles: some drivers are slower with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from pocketgrad.backends.api import Ran
from pocketgrad.base.errors import DeviceError
from pocketgrad.trace.clock import Tie, now_ns

QUEUE = "queue 0"
TIES = 5  # the host was interrupted in some; the narrowest is used


class Device(Protocol):
    """What is needed of the backend whose commands are timed."""

    name: str
    context: Any
    device: Any
    queue: Any
    timing: EventTiming | None

    def finish(self) -> None:
        """Wait until all that was enqueued has ended."""


class EventTiming:
    """Keeps the event of every command. ``cl`` is pyopencl, which only the backend imports."""

    source = "device events"

    def __init__(self, backend: Device, cl: Any) -> None:
        self.on = True
        self._backend, self._cl = backend, cl
        self._kept: list[tuple[Literal["launch", "upload"], int, Any]] = []
        self._plain = backend.queue
        try:
            backend.queue = cl.CommandQueue(
                backend.context, properties=cl.command_queue_properties.PROFILING_ENABLE
            )
        except cl.Error as error:
            raise DeviceError(
                f"device {backend.name} gives no launch times ({error}); its driver refuses a "
                "queue with profiling"
            ) from error

    def keep(self, kind: Literal["launch", "upload"], number: int, event: Any) -> None:
        """Remember a command just enqueued."""
        if self.on:
            self._kept.append((kind, number, event))

    def ties(self) -> Mapping[str, Tie]:
        """By a marker: a driver notes the time of queueing while the host is in the call.

        Where that time does not fit what followed, the marker's end is taken, less exactly.
        """
        self._backend.finish()
        return {
            QUEUE: min((self._tie() for _ in range(TIES)), key=lambda t: t.after_ns - t.before_ns)
        }

    def _tie(self) -> Tie:
        before = now_ns()
        event = self._cl.enqueue_marker(self._backend.queue)
        queued = now_ns()
        self._backend.queue.flush()
        event.wait()
        after = now_ns()
        times = event.profile
        if 0 < times.queued <= times.end and times.end - times.queued <= after - before:
            return Tie(times.queued, before, queued)
        return Tie(times.end, before, after)

    def take(self) -> list[Ran]:
        """The times of the events; drivers keep them until the events go, so take them often."""
        self._backend.finish()
        kept, self._kept = self._kept, []
        found = []
        for kind, number, event in kept:
            times = event.profile
            found.append(
                Ran(kind, number, QUEUE, times.queued, times.submit, times.start, times.end)
            )
        return found

    def close(self) -> None:
        """Take the plain queue again."""
        self._backend.finish()
        self._backend.queue, self._backend.timing = self._plain, None
