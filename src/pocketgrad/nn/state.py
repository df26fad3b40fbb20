"""Loading arrays into a model by name, completely or not at all."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import CheckpointError
from pocketgrad.nn.parameter import Buffer, Tensorlike

SHOWN = 5  # of each kind of problem; a foreign file would list hundreds


class Mismatch(NamedTuple):
    """Names that only one side has."""

    missing: list[str]
    unexpected: list[str]


def kept(entries: Iterable[tuple[str, Tensorlike]]) -> Iterator[tuple[str, Tensorlike]]:
    """What a state dict holds: all but the buffers that are not persistent."""
    return ((n, t) for n, t in entries if not isinstance(t, Buffer) or t.persistent)


def load(targets: Mapping[str, Tensorlike], arrays: Mapping[str, Any], strict: bool) -> Mismatch:
    """Set every target from the array of its name; raises CheckpointError before any is set."""
    found: dict[str, Array] = {name: np.asarray(array) for name, array in arrays.items()}
    missing = [name for name in targets if name not in found]
    unexpected = [name for name in found if name not in targets]
    problems = [
        f"'{name}' has shape {found[name].shape}, the model's is {target.shape}"
        for name, target in targets.items()
        if name in found and found[name].shape != target.shape
    ]
    if strict:
        problems += [f"'{name}' is missing{_near(name, unexpected)}" for name in missing]
        problems += [
            f"'{name}' is not in the model{_near(name, list(targets))}" for name in unexpected
        ]
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise CheckpointError(
            f"the weights do not fit the model: {'; '.join(problems[:SHOWN])}{more}"
        )
    for name, target in targets.items():
        if name in found:
            target.data = found[name]
    return Mismatch(missing, unexpected)


def _near(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    return f" (did you mean '{near[0]}'?)" if near else ""
