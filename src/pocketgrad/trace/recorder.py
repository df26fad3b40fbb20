"""Collects spans and samples while a run goes on: it only appends, and does nothing when off.

Any thread may append. A channel has one writer, which sends its samples in the order of time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TypeVar

import numpy as np

from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.trace.clock import now_ns
from pocketgrad.trace.model import Absent, Channel, Scalar, Series, Span, Trace

T = TypeVar("T")
_NOTHING = nullcontext()
_END = object()


class _Timed:
    """A span from the entry of a block to its end."""

    __slots__ = ("_args", "_name", "_recorder", "_start_ns", "_track")

    def __init__(
        self, recorder: Recorder, name: str, track: str, args: Mapping[str, Scalar] | None
    ) -> None:
        self._recorder, self._name, self._track, self._args = recorder, name, track, args

    def __enter__(self) -> None:
        self._start_ns = now_ns()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._recorder.span(self._name, self._track, self._start_ns, now_ns(), self._args)


class Recorder:
    """An append-only record of a run; ``Recorder(on=False)`` costs one comparison per call."""

    def __init__(self, on: bool = True) -> None:
        self.on = on
        self._spans: list[Span] = []
        self._channels: dict[str, Channel] = {}
        self._times: dict[str, array[int]] = {}
        self._values: dict[str, array[float]] = {}
        self._absent: list[Absent] = []
        self._metadata: dict[str, Scalar] = {}

    def span(
        self,
        name: str,
        track: str,
        start_ns: int,
        end_ns: int,
        args: Mapping[str, Scalar] | None = None,
    ) -> None:
        """Append what happened from start to end."""
        if self.on:
            self._spans.append(Span(name, track, start_ns, end_ns, args or {}))

    def timed(
        self, name: str, track: str = "host", args: Mapping[str, Scalar] | None = None
    ) -> AbstractContextManager[None]:
        """Append the time its block takes, also when the block raises."""
        return _Timed(self, name, track, args) if self.on else _NOTHING

    def each(self, name: str, items: Iterable[T], track: str = "host") -> Iterator[T]:
        """The same items, with the time that each took to come."""
        going = iter(items)
        while True:
            with self.timed(name, track):
                item = next(going, _END)
            if item is _END:
                return
            yield item  # type: ignore[misc]  # the end was told apart above

    def declare(self, channel: Channel) -> None:
        """Announce a channel; the same one twice is no mistake, two of one name are."""
        if not self.on:
            return
        known = self._channels.setdefault(channel.name, channel)
        if known != channel:
            raise SettingError(
                f"two channels are named '{channel.name}': from {known.source} and from "
                f"{channel.source}; give them the labels of their devices"
            )
        self._times.setdefault(channel.name, array("q"))
        self._values.setdefault(channel.name, array("d"))

    def sample(self, name: str, t_ns: int, value: float) -> None:
        """Append one value of a declared channel."""
        if not self.on:
            return
        try:
            self._values[name].append(value)
            self._times[name].append(t_ns)
        except KeyError:
            raise UnknownNameError("channel", name, self._channels) from None

    def missing(self, absent: Iterable[Absent]) -> None:
        """Note what could not be observed; each only once."""
        if self.on:
            self._absent += [a for a in dict.fromkeys(absent) if a not in self._absent]

    def note(self, key: str, value: Scalar) -> None:
        """Set one item of the metadata."""
        if self.on:
            self._metadata[key] = value

    @property
    def size(self) -> int:
        """How many spans and samples there are."""
        return len(self._spans) + sum(len(times) for times in self._times.values())

    def trace(self) -> Trace:
        """All so far, as a value that later appending does not change."""
        return Trace(
            tuple(self._spans),
            {name: self._series(name) for name in self._channels},
            tuple(self._absent),
            dict(self._metadata),
        )

    def _series(self, name: str) -> Series:
        times, values = self._times[name], self._values[name]
        count = len(times)  # the writer may be between its two appends
        t_ns = np.array(times[:count], np.int64)
        read = np.array(values[:count], np.float64)
        t_ns.flags.writeable = read.flags.writeable = False
        return Series(self._channels[name], t_ns, read)


OFF = Recorder(on=False)
