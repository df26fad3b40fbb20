"""Batches that lie on a device; ``session`` puts them there and trains on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pocketgrad.backends.api import Bound
from pocketgrad.train.step import Inputs, Kind


@dataclass(eq=False)
class Resident:
    """Batches of one type that lie on the device, and the steps bound to them."""

    inputs: Inputs
    buffers: dict[str, Any]
    count: int
    bound: dict[Kind, Bound] = field(default_factory=dict)
