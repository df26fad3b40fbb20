"""Dropout. The mask is a function of seed, step and stream: made again, never stored."""

from __future__ import annotations

from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import Value
from pocketgrad.ops.arithmetic import mul
from pocketgrad.ops.compare import ge, where
from pocketgrad.ops.source import uniform


def dropout(x: Value, p: float, seed: Value, step: Value, stream: int) -> Value:
    """x with each element 0 at probability p, and the others divided by 1 - p.

    ``stream`` differs between all uses in a graph; seed and step are int32 scalars.
    """
    if not 0.0 <= p <= 1.0:
        raise SettingError(f"a dropout probability is between 0 and 1, got {p}")
    if p == 0.0:
        return x
    kept = ge(uniform(x.shape, seed, step, stream), p)
    return where(kept, x if p == 1.0 else mul(x, 1 / (1 - p)), 0.0)
