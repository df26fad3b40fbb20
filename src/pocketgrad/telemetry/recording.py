"""Makes a recording of a real machine: all that samplers read on it, and how it changes.

What can tell one device or person from another (serial numbers, addresses) is not read.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence

from pocketgrad.telemetry.api import Probe
from pocketgrad.telemetry.machine import Files, Machine, UnreadableError
from pocketgrad.telemetry.playback import Frame, Recording
from pocketgrad.trace.clock import now_ns

# Kept although no sampler reads them: they tell what a device without a sampler could offer.
WORTH_KEEPING = (
    ("/proc/device-tree", r"model|compatible"),
    ("/etc", r"nv_tegra_release"),
    ("/sys/class/thermal/*", r"type|trip_point_\d+_(type|temp)|max_state|policy"),
    ("/sys/class/hwmon/*", r"name|\w+\d+_(label|input|average)|update_interval"),
    (
        "/sys/class/power_supply/*",
        r"type|status|online|capacity|\w+_now|\w+_avg|charge_counter|temp",
    ),
    ("/sys/class/powercap/*", r"name|enabled|constraint_\d_(name|power_limit_uw)"),
    ("/sys/class/devfreq/*", r"load|\w+_freq|governor|available_frequencies"),
    ("/sys/class/kgsl/kgsl-3d0", r"gpu\w*|temp|num_pwrlevels|idle_timer"),
    ("/sys/class/misc/mali0/device", r"gpuinfo|utili[sz]ation|power_policy|dvfs_period|core_mask"),
    ("/sys/devices/system/cpu", r"online|present|possible"),
    ("/sys/devices/system/cpu/cpu*", r"cpu_capacity|online"),
    ("/sys/devices/system/cpu/cpufreq/*", r"\w+_freq|scaling_(governor|driver)|related_cpus"),
)
LONGEST = 100_000  # characters of a file: no sensor writes more


class Listener:
    """Stands between samplers and a machine and remembers every answer."""

    def __init__(self, machine: Machine) -> None:
        self._inner: Files = machine.files
        self._run = machine.run
        self.heard: dict[str, str | OSError] = {}
        self.machine = Machine(
            self, self.run, machine.ticks_per_s, machine.page_nbytes, process=machine.process
        )

    def read(self, path: str, keep: bool) -> str:
        """The machine's own answer, remembered."""
        try:
            content = self._inner.read(path, keep)
        except FileNotFoundError:
            self.heard.pop(path, None)  # absent: it is not in the recording either
            raise
        except OSError as error:
            self.heard[path] = OSError(error.errno, error.strerror)
            raise
        self.heard[path] = content[:LONGEST]
        return content

    def names(self, folder: str) -> list[str]:
        """As the machine lists them; the files that are read say it all again."""
        return self._inner.names(folder)

    def run(self, command: Sequence[str]) -> str:
        """The machine's own answer, remembered."""
        answer = self._run(command)
        self.heard[f"$ {' '.join(command)}"] = answer
        return answer


def record(
    machine: Machine,
    probes_of: Callable[[Machine], Sequence[Probe]],
    seconds: float,
    period_ns: int,
    clock: Callable[[], int] = now_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Recording:
    """What is there, and for a while what changes of it; ``probes_of`` finds the samplers."""
    listener = Listener(machine)
    probes = probes_of(listener.machine)
    for path in _worth_keeping(listener.machine):
        listener.machine.get(path)
    tree = dict(listener.heard)
    state, frames, start = tree, [], clock()
    while (elapsed := clock() - start) < seconds * 1e9:
        for probe in probes:
            _touch(probe)
        changes: dict[str, str | OSError | None] = {
            path: content
            for path, content in listener.heard.items()
            if _differs(state.get(path), content)
        }
        changes |= {path: None for path in state if path not in listener.heard}
        if changes and elapsed > 0:
            frames.append(Frame(elapsed, changes))
        state = dict(listener.heard)
        sleep(max(0.0, (period_ns - (clock() - start - elapsed)) / 1e9))
    about: dict[str, str | int] = {
        "device": (machine.get("/proc/device-tree/model") or platform.machine()).strip("\x00"),
        "kernel": platform.release(),
        "ticks_per_s": machine.ticks_per_s,
        "page_nbytes": machine.page_nbytes,
    }
    if seconds:  # what was looked at once stands for all time
        about["duration_ns"] = max(round(seconds * 1e9), frames[-1].t_ns if frames else 0)
    return Recording(tree, tuple(frames), about)


def _touch(probe: Probe) -> None:
    """Read, so that the listener hears it; a failure is heard as well."""
    try:
        probe.read()
    except UnreadableError:
        return


def _differs(before: str | OSError | None, now: str | OSError) -> bool:
    if isinstance(before, OSError) and isinstance(now, OSError):
        return before.errno != now.errno
    return before != now


def _worth_keeping(machine: Machine) -> Iterator[str]:
    for pattern, files in WORTH_KEEPING:
        folder, star, _ = pattern.partition("/*")
        folders = [pattern]
        if pattern.endswith("cpu*"):
            folder = pattern.rpartition("/")[0]
            folders = [f"{folder}/{name}" for name in machine.names(folder, r"cpu\d+")]
        elif star:
            folders = [f"{folder}/{name}" for name in machine.names(folder)]
        for place in folders:
            yield from (f"{place}/{name}" for name in machine.names(place, files))
