"""What a sampler is: a function that looks at a machine once and says what can be read on it.

Reading, timing and storing are not its business; `poll` and `thread` do that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pocketgrad.telemetry.machine import Machine, UnreadableError
from pocketgrad.trace.model import Absent, Channel

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing that is read at once, and so has one timestamp: mostly a file.

    ``read`` gives a value per channel name; one that it leaves out could not be read this time.
    Probes of one lane are read one after another; a lane of its own keeps a slow one from
    delaying the rest.
    """

    channels: tuple[Channel, ...]
    read: Callable[[], Mapping[str, float]]
    period_ns: int = 0  # polled no more often: the source is slower, or costs too much
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a sampler can read here, and what it cannot, with the reason."""

    probes: tuple[Probe, ...] = ()
    absent: tuple[Absent, ...] = ()


class Sampler(Protocol):
    """Looks at a machine; raises nothing, whatever it meets there."""

    def __call__(self, machine: Machine) -> Found:
        """What is readable and what is not."""


class Search:
    """Collects what a sampler finds, trying each thing once before it promises it."""

    def __init__(self, sampler: str) -> None:
        self.sampler = sampler
        self._probes: list[Probe] = []
        self._absent: list[Absent] = []

    def probe(self, probe: Probe) -> None:
        """Keep a probe if a first read works, or fails only for now."""
        if self.readable(probe.channels[0].name, probe.read):
            self._probes.append(probe)

    def file(
        self,
        machine: Machine,
        channel: Channel,
        parse: Callable[[str], float],
        period_ns: int = 0,
        lane: str = "",
    ) -> None:
        """Keep the probe of a file with one value; the file is the channel's source."""

        def read() -> Mapping[str, float]:
            return {channel.name: machine.value(channel.source, parse)}

        self.probe(Probe((channel,), read, period_ns, lane))

    def readable(self, name: str, read: Callable[[], object]) -> bool:
        """Whether a read works, or fails only for now; notes what is lastingly absent."""
        try:
            read()
        except UnreadableError as error:
            if error.lasting:
                self.missing(name, str(error))
                return False
        return True

    def missing(self, name: str, reason: str) -> None:
        """Note what is not available."""
        self._absent.append(Absent(name, reason))

    def found(self, otherwise: str) -> Found:
        """The result; ``otherwise`` is the reason when there was nothing at all."""
        if not self._probes and not self._absent:
            self.missing(self.sampler, otherwise)
        return Found(tuple(self._probes), tuple(self._absent))


def distinct(labels: Sequence[tuple[str, str]]) -> list[str]:
    """Names of (label, place): the label, with its place where two things share one."""
    names = [label for label, _ in labels]
    return [n if names.count(n) == 1 else f"{n}@{place}" for n, place in labels]
