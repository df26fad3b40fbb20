"""Train neural networks on the device itself. ``import pocketgrad as pg``; parts load when used."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "data": "pocketgrad.data",
    "errors": "pocketgrad.base.errors",
    "nn": "pocketgrad.nn",
    "ops": "pocketgrad.ops",
    "optim": "pocketgrad.nn.optim",
    "profile": "pocketgrad.profile",
    "schedule": "pocketgrad.nn.schedule",
    "train": "pocketgrad.train",
    "zoo": "pocketgrad.zoo",
}
_NAMES = {
    "Trainer": "pocketgrad.train",
    "compile_step": "pocketgrad.train",
}

__all__ = ["__version__", *_MODULES, *_NAMES]  # noqa: PLE0604  # all are strings


def __getattr__(name: str) -> Any:  # a module, class or function, by name
    if name in _MODULES:
        found: Any = import_module(_MODULES[name])
    elif name in _NAMES:
        found = getattr(import_module(_NAMES[name]), name)
    else:
        near = difflib.get_close_matches(name, __all__, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise AttributeError(f"pocketgrad has no '{name}'{hint}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
