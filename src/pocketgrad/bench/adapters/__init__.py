"""Frameworks by name. A module holds VARIANTS, and imports its framework inside functions only."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.bench.api import Adapter

OURS = "pocketgrad"
ADAPTERS: Mapping[str, str] = {
    "pocketgrad": "pocketgrad.bench.adapters.pocketgrad",
    "torch": "pocketgrad.bench.adapters.torch",
    "jax": "pocketgrad.bench.adapters.jax",
    "tensorflow": "pocketgrad.bench.adapters.tensorflow",
    "mnn": "pocketgrad.bench.adapters.mnn",
    "tinygrad": "pocketgrad.bench.adapters.tinygrad",
}
PEERS = tuple(name for name in ADAPTERS if name != OURS)


def adapter(name: str) -> Adapter:
    """The adapter of that name; its framework is not imported yet."""
    if name not in ADAPTERS:
        raise UnknownNameError("peer", name, ADAPTERS)
    return cast(Adapter, import_module(ADAPTERS[name]))  # checked against the protocol by a test
