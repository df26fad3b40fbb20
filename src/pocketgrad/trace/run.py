"""A measured run: its raw values, warm-ups and metadata. Statistics are computed late, from it.

Nothing here measures; `bench` and `tune` fill it, `report` reads it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pocketgrad.base.errors import DataError, SettingError, UnknownNameError
from pocketgrad.trace.model import Scalar


@dataclass(frozen=True, slots=True)
class Key:
    """What a metadata key may hold, and in which unit."""

    type: type[Scalar]
    unit: str = ""
    least: float | None = None


# Every key that a Run may carry: readers rely on its type and unit.
KEYS: Mapping[str, Key] = MappingProxyType(
    {
        "backend": Key(str),
        "batch": Key(int, "samples", 1),
        "command": Key(str),
        "commit": Key(str),
        "device": Key(str),
        "driver": Key(str),
        "dtype": Key(str),
        "governor": Key(str),
        "loss": Key(float),
        "max_frequency_hz": Key(float, "Hz", 0),
        "model": Key(str),
        "peak_nbytes": Key(int, "B", 0),
        "pocketgrad": Key(str),
        "python": Key(str),
        "seed": Key(int),
        "steps": Key(int, "steps", 0),
        "temperature_after_c": Key(float, "degC", -273.15),
        "temperature_before_c": Key(float, "degC", -273.15),
        "unit": Key(str),
    }
)


def _check(name: str, value: object) -> None:
    if name not in KEYS:
        raise UnknownNameError("metadata key", name, KEYS)
    key = KEYS[name]
    whole = isinstance(value, int) and not isinstance(value, bool)
    fits = whole or isinstance(value, float) if key.type is float else type(value) is key.type
    if not fits:
        raise SettingError(
            f"metadata '{name}' is {value!r}; it takes {key.type.__name__} {key.unit}".rstrip()
        )
    if key.least is not None and isinstance(value, int | float) and value < key.least:
        raise SettingError(f"metadata '{name}' is {value}; it cannot be below {key.least:g}")


@dataclass(frozen=True, slots=True)
class Run:
    """Values in the order they were measured; immutable."""

    values: tuple[float, ...]
    warmups: tuple[float, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.metadata.items():
            _check(name, value)
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def to_json(self) -> str:
        """As text that `from_json` gives back unchanged."""
        fields = {
            "values": self.values,
            "warmups": self.warmups,
            "metadata": dict(self.metadata),
            "warnings": self.warnings,
        }
        return json.dumps(fields, indent=1)


def from_json(text: str) -> Run:
    """A run written by `Run.to_json`; DataError when it is something else."""
    try:
        fields: Any = json.loads(text)
        return Run(
            tuple(float(v) for v in fields["values"]),
            tuple(float(v) for v in fields["warmups"]),
            dict(fields["metadata"]),
            tuple(str(w) for w in fields["warnings"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"this is no recorded run ({error!r}); write one with Run.to_json"
        ) from None


def median(run: Run) -> float:
    """The middle of its values."""
    return statistics.median(_some(run))


def quartiles(run: Run) -> tuple[float, float]:
    """The values below which a quarter and three quarters lie; of one value, that value twice."""
    values = _some(run)
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def _some(run: Run) -> tuple[float, ...]:
    if not run.values:
        raise SettingError("a run without values has no statistics; measure at least one step")
    return run.values
