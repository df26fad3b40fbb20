"""Plays the recorded devices of tests/fixtures/sysfs back, with a made-up clock."""

from __future__ import annotations

from pathlib import Path

from pocketgrad.telemetry import find
from pocketgrad.telemetry.machine import UnreadableError
from pocketgrad.telemetry.playback import Playback, Recording, load
from pocketgrad.telemetry.poll import Poller
from pocketgrad.trace.model import Trace
from pocketgrad.trace.recorder import Recorder

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "sysfs"
DEVICES = sorted(path.name for path in FIXTURES.iterdir())
MS = 1_000_000
S = 1000 * MS


def device(name: str) -> Recording:
    return load(FIXTURES / name)


def readings(recording: Recording, at_ns: int = 0) -> dict[str, float]:
    """Every channel that can be read at one moment of the recording."""
    now = [0]
    found = find(Playback(recording, lambda: now[0]).machine)
    now[0] = at_ns
    values: dict[str, float] = {}
    for probe in found.probes:
        try:
            values |= probe.read()
        except UnreadableError:
            continue
    return values


def absences(recording: Recording) -> dict[str, str]:
    """What cannot be read, with the reason."""
    return {absent.name: absent.reason for absent in find(Playback(recording).machine).absent}


def sampled(recording: Recording, until_ns: int = 2 * S) -> Trace:
    """The trace of polling every 10 ms; a read takes no time."""
    now = [0]
    recorder = Recorder()
    found = find(Playback(recording, lambda: now[0]).machine)
    recorder.missing(found.absent)
    poller = Poller(found.probes, recorder, 10 * MS, lambda: now[0])
    for t_ns in range(0, until_ns, 10 * MS):
        now[0] = t_ns
        poller.poll()
    now[0] = until_ns
    poller.poll_all()
    poller.finish()
    return recorder.trace()
