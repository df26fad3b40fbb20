"""What profiling costs: blocks of steps with and without it, in turn, on the same batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pocketgrad.profile.gather import Gatherer
from pocketgrad.profile.profiler import AWAY_NS
from pocketgrad.telemetry import find
from pocketgrad.telemetry.machine import this_machine
from pocketgrad.telemetry.thread import Monitor
from pocketgrad.trace.clock import now_ns
from pocketgrad.trace.profile import Overhead
from pocketgrad.trace.recorder import Recorder
from pocketgrad.train.session import Session

BLOCK_NS = 100_000_000  # shorter blocks would show the waiting at their ends
MOST_STEPS = 200  # in a block
ROUNDS = 9
LEAST_ROUNDS = 2


def measure(
    session: Session, step: Callable[[], None], step_ns: float, budget_s: float
) -> Overhead:
    """Time of a step in each block; rounds until the budget is used, but two at least."""
    steps = int(np.clip(BLOCK_NS / max(step_ns, 1), 1, MOST_STEPS))
    plain: list[float] = []
    profiled: list[float] = []
    until = now_ns() + round(budget_s * 1e9)
    while len(plain) < LEAST_ROUNDS or (len(plain) < ROUNDS and now_ns() < until):
        kinds = (False, True) if len(plain) % 2 == 0 else (True, False)
        for with_it in kinds:
            block = _profiled if with_it else _block
            (profiled if with_it else plain).append(block(session, step, steps))
    return Overhead(plain_step_ns=np.array(plain), profiled_step_ns=np.array(profiled))


def _block(session: Session, step: Callable[[], None], steps: int) -> float:
    session.backend.finish()
    start = now_ns()
    for _ in range(steps):
        step()
    session.backend.finish()
    return (now_ns() - start) / steps


def _profiled(session: Session, step: Callable[[], None], steps: int) -> float:
    recorder = Recorder()
    gatherer = Gatherer(session, recorder)
    gatherer.open()
    try:
        with Monitor(find(this_machine()), recorder) as monitor:
            monitor.wait_for_first(AWAY_NS)
            return _block(session, step, steps)
    finally:
        gatherer.close()
