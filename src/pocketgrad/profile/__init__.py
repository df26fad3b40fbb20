"""Where time, bytes and joules of training go: ``with pg.profile(trainer) as p: …``.

The package itself can be called, so that ``pg.profile(trainer)`` and ``pg.profile.compare(a, b)``
are both what they look like.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from pocketgrad.profile.compare import compare
from pocketgrad.profile.folder import load
from pocketgrad.profile.profiler import Profiler, Trains

__all__ = ["Profiler", "compare", "load", "profile"]


def profile(
    trainer: Trains, *, discard: int = 3, device_tree: str | Path | None = None
) -> Profiler:
    """Measure the training steps inside ``with pg.profile(trainer) as p``; then ``p.table()``.

    The first ``discard`` steps are warm-ups. ``device_tree``: sensors from a recorded device.
    """
    return Profiler(trainer, discard=discard, device_tree=device_tree)


class _Callable(ModuleType):
    """A module that is also the function of its name."""

    def __call__(
        self, trainer: Trains, *, discard: int = 3, device_tree: str | Path | None = None
    ) -> Profiler:
        return profile(trainer, discard=discard, device_tree=device_tree)


sys.modules[__name__].__class__ = _Callable
