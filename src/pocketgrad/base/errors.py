"""The exceptions a user can meet. Each message says what was asked, what was found, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PocketgradError(Exception):
    """Base of all errors raised on purpose; the command line prints its text as one line."""


class ShapeError(PocketgradError):
    """Shapes that do not fit an operation."""


class DtypeError(PocketgradError):
    """An element type that an operation or device does not take."""


class GraphError(PocketgradError):
    """A graph that breaks a rule of the IR; the verifier names the pass that broke it."""


class NoGradientError(PocketgradError):
    """A gradient was asked through an operation that has none."""


class DeviceError(PocketgradError):
    """A device or driver that is missing, broken, or refused."""


class DataError(PocketgradError):
    """A data set or batch that cannot be used; names file and place."""


class CheckpointError(PocketgradError):
    """A saved file that is truncated, corrupt, foreign, or does not fit the model."""


class NumericsError(PocketgradError):
    """A NaN or infinity stopped training; names the first operation that made it."""


class SettingError(PocketgradError):
    """A setting, argument or option with a value that cannot be used."""


class UnknownNameError(PocketgradError):
    """A name that is in no table, with the nearest names that are."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
        super().__init__(f"no {kind} is named '{name}'; {hint}")
        self.kind, self.name = kind, name
