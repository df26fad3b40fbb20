"""`pocketgrad train --monitor`: progress and what the sensors say, twice a second on a terminal.

Values are shown and forgotten; to keep them there is `pocketgrad profile`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pocketgrad.base.units import si
from pocketgrad.profile.absences import why_not
from pocketgrad.telemetry import find
from pocketgrad.telemetry.energy import utilisation
from pocketgrad.telemetry.machine import Machine, this_machine
from pocketgrad.telemetry.thread import Monitor
from pocketgrad.trace.model import Channel
from pocketgrad.trace.recorder import Recorder
from pocketgrad.train.progress import Silent, line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pocketgrad.train.history import Epoch
    from pocketgrad.train.session import Totals

PERIOD_NS = 500_000_000
HZ = 2
_SHOWN = {"power": "W", "temperature": "°C", "frequency": "Hz", "bytes": "B", "share": "%"}
_MEMORY = ("process/resident", "meminfo/MemAvailable", "cgroup/memory")


class Forgetting(Recorder):
    """Knows channels and what is absent, and keeps no samples: it may run for days."""

    def sample(self, name: str, t_ns: int, value: float) -> None:
        """Nothing."""


class Dashboard(Silent):
    """What `Trainer.fit` tells, with the last value of every sensor."""

    def __init__(self, console: Console | None = None, machine: Machine | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._recorder = Forgetting()
        self._found = find(machine or this_machine())
        self._monitor = Monitor(self._found, self._recorder, PERIOD_NS)
        self._channels = {c.name: c for probe in self._found.probes for c in probe.channels}
        missing = why_not(self._channels.values(), self._found.absent)
        self._absent = [f"{absent.name}: not available" for absent in missing]
        self._before: Mapping[str, float] = {}
        self._cores: dict[str, float] = {}
        self._progress = ""
        self._epochs, self._per_epoch = 0, 0
        self._live = Live(
            console=console or Console(stderr=True),
            get_renderable=self.view,
            refresh_per_second=HZ,
            transient=True,
        )

    def begin(self, text: str, epochs: int, per_epoch: int | None) -> None:
        """Start to sample and to draw."""
        self._epochs, self._per_epoch = epochs, per_epoch or 0
        self._progress = "building kernels"
        self.note(text)
        self._monitor.start()
        self._live.start()

    def advance(self, epoch: int, batches: int, totals: Totals, samples_per_s: float) -> None:
        """Keep what the next drawing will show."""
        of = f"/{self._per_epoch}" if self._per_epoch else ""
        accuracy = f"  accuracy {totals.accuracy:.4f}" if totals.correct else ""
        self._progress = (
            f"epoch {epoch + 1}/{self._epochs}  batch {batches}{of}  loss {totals.mean_loss:.4f}"
            f"{accuracy}  {samples_per_s:,.0f} samples/s"
        )

    def epoch(self, epoch: Epoch) -> None:
        """A line that stays."""
        self.note(line(epoch))

    def note(self, text: str) -> None:
        """A line that stays."""
        self._live.console.print(text, highlight=False, markup=False)

    def end(self) -> None:
        """Stop drawing and sampling."""
        self._live.stop()
        self._monitor.stop()

    def view(self) -> Table:
        """What is on the screen now."""
        from rich.table import Table
        from rich.text import Text

        latest = dict(self._monitor.latest())
        self._update_cores(latest)
        shown = Table.grid(padding=(0, 2))
        rows = [("training", self._progress), *self.rows(latest)]
        for name, value in rows:
            shown.add_row(Text(name, style="bold"), Text(value))
        return shown

    def rows(self, latest: Mapping[str, float]) -> list[tuple[str, str]]:
        """Names and values: cores first, then by quantity, then what there is not."""
        found = []
        if self._cores:
            cores = "  ".join(f"{core} {share:.0f} %" for core, share in self._cores.items())
            found.append(("cores", cores))
        for quantity in _SHOWN:
            values = [
                f"{_short(c)} {_value(c, latest[n])}"
                for n, c in self._channels.items()
                if c.quantity == quantity and n in latest and _wanted(c)
            ]
            if values:
                found.append((quantity, "  ".join(values)))
        if self._absent:
            found.append(("", "  ".join(self._absent)))
        return found

    def _update_cores(self, latest: Mapping[str, float]) -> None:
        """Shares of the time since the values that were last seen to differ."""
        names = [n for n in latest if n.startswith("proc_stat/") and n.endswith("/busy")]
        for name in names:
            core = name.split("/")[1]
            idle = f"proc_stat/{core}/idle"
            if name in self._before and idle in self._before and idle in latest:
                grown = [latest[n] - self._before[n] for n in (name, idle)]
                share = utilisation(*grown)
                if share is not None:
                    self._cores[core] = share
        self._before = latest


def _wanted(channel: Channel) -> bool:
    if channel.quantity == "bytes":
        return channel.name in _MEMORY
    return not channel.within


def _short(channel: Channel) -> str:
    return channel.name.split("/", 1)[-1]


def _value(channel: Channel, value: float) -> str:
    unit = _SHOWN[channel.quantity]
    return si(value, unit) if unit in ("Hz", "B") else f"{value:.3g} {unit}"
