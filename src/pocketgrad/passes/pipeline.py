"""The order of the passes, nothing else."""

from __future__ import annotations

from collections.abc import Callable

from pocketgrad.base.config import settings
from pocketgrad.ir.core import Graph
from pocketgrad.ir.verify import verify
from pocketgrad.passes.cleanup import drop_dead, share_equal
from pocketgrad.passes.gather_sums import gather_sums

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    drop_dead,
    share_equal,
    gather_sums,
    share_equal,
    drop_dead,
)


def optimise(graph: Graph) -> Graph:
    """Run all passes; with POCKETGRAD_VERIFY=1 the graph is checked after each."""
    check = settings().verify
    if check:
        verify(graph)
    for step in PASSES:
        graph = step(graph)
        if check:
            verify(graph, after=step.__name__)
    return graph
