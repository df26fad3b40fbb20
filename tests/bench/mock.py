"""Participants that train nothing: they answer the runner from a script, and keep no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pocketgrad.bench.api import Participant, Variant
from pocketgrad.bench.remote import OutError


def honest(n: int) -> float:
    """A loss that training moves: of step n, from 1."""
    return 2.0 * 0.98 ** (n - 1)


class Mock:
    """Answers as a worker. ``times``: seconds per step of each block, the last one for ever."""

    def __init__(
        self,
        name: str,
        times: Sequence[float],
        loss: Callable[[int], float] = honest,
        block_loss: Callable[[int], float] | None = None,
        precision: str = "float32",
    ) -> None:
        adapter, _, variant = name.partition(":")
        self.participant = Participant(adapter, Variant(variant, "", precision))
        self.pid: int | None = None
        self.times, self.loss, self.block_loss = list(times), loss, block_loss or loss
        self.fails: dict[str, tuple[str, str] | type[BaseException]] = {}
        self.order: list[str] = []  # names of participants, one for each block
        self.closed = False

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        failure = self.fails.get(do)
        if isinstance(failure, tuple):
            raise OutError(*failure)
        if failure is not None:
            raise failure
        reply: dict[str, Any] = getattr(self, f"_{do}")(**arguments)
        return reply

    def close(self) -> None:
        self.closed = True

    def _load(self) -> dict[str, Any]:
        return {"import_s": 0.5, "version": "1", "idle_nbytes": 100}

    def _open(self, folder: str, threads: int) -> dict[str, Any]:
        return {"open_s": 0.1, "first_step_s": 0.2, "loss": self.loss(1)}

    def _losses(self, at: list[int]) -> dict[str, Any]:
        return {"losses": [self.loss(n) for n in at]}

    def _block(self, steps: int, lead: int) -> dict[str, Any]:
        self.order.append(self.participant.name)
        step_s = self.times.pop(0) if len(self.times) > 1 else self.times[0]
        ns = round(step_s * steps * 1e9)
        return {"ns": ns, "cpu_ns": 2 * ns, "loss": self.block_loss(lead + steps)}

    def _ceilings(self) -> dict[str, Any]:
        return {"ceilings": None}

    def _facts(self) -> dict[str, Any]:
        return {"peak_nbytes": 1000, "now_nbytes": 900, "facts": {}}
