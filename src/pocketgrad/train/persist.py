"""What a checkpoint says besides arrays, what has to agree before it is taken up, and weights."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import CheckpointError
from pocketgrad.engine import checkpoint
from pocketgrad.nn.module import Module
from pocketgrad.train.step import StepSpec, Stored

_NORMALISATION = ("pocketgrad.mean", "pocketgrad.std")


def versions() -> dict[str, str]:
    """Of what computes; recorded, not compared."""
    import pocketgrad

    return {"pocketgrad": pocketgrad.__version__, "numpy": np.__version__}


def identity(spec: StepSpec, seed: int) -> dict[str, Any]:
    """What must be the same for training to go on: everything a step is made of."""
    parameters = dict(spec.model.named_parameters())
    return {
        "model": repr(spec.model).splitlines(),
        "arrays": {name: str(tensor.type) for name, tensor in spec.model.tensors()},
        "frozen": sorted(n for n, p in parameters.items() if not p.trainable),
        "loss": _named(spec.loss),
        "optimizer": repr(spec.optimizer),
        "schedule": repr(spec.schedule),
        "accumulate": spec.accumulate,
        "augment": repr(spec.augment),
        "seed": seed,
    }


def differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence per entry that differs, with both values."""
    found = []
    for key in dict.fromkeys((*saved, *now)):
        what, a, b = key, saved.get(key), now.get(key)
        if a == b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            name = next(n for n in dict.fromkeys((*b, *a)) if a.get(n) != b.get(n))
            what, a, b = f"{key} '{name}'", a.get(name, "absent"), b.get(name, "absent")
        elif isinstance(a, list) and isinstance(b, list):
            a, b = next(p for p in itertools.zip_longest(a, b, fillvalue="absent") if p[0] != p[1])
        found.append(f"{what} was {_text(a)}, now it is {_text(b)}")
    return found


def require_same(path: Path, saved: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """CheckpointError naming what differs."""
    found = differences(saved, now)
    if found:
        raise CheckpointError(
            f"'{path}' does not fit: {'; '.join(found[:3])}. Resume with what it was saved with, "
            "or start anew in another folder"
        )


def save_weights(path: Path, model: Module, stored: Stored) -> None:
    """Weights under PyTorch's names, with how samples are normalised in the metadata."""
    numbers = (" ".join(map(repr, values)) for values in (stored.mean, stored.std))
    metadata = {"format": "pt", **dict(zip(_NORMALISATION, numbers, strict=True))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.write_whole(path, checkpoint.to_safetensors(model.state_dict(), metadata))
    except OSError as error:
        raise CheckpointError(
            f"cannot save '{path}': {error.strerror or error}; choose another place, "
            "the model is still in memory"
        ) from error


def load_weights(path: Path) -> tuple[dict[str, Array], tuple[tuple[float, ...], ...] | None]:
    """The arrays of a file of weights, and mean and deviation of samples if it tells them."""
    if not path.is_file():
        raise CheckpointError(f"there is no file of weights at '{path}'")
    arrays, metadata = checkpoint.read_safetensors(path)
    if metadata.get("format") == checkpoint.FORMAT:
        found = {n.removeprefix("model/"): a for n, a in arrays.items() if n.startswith("model/")}
        return found, None
    if not all(key in metadata for key in _NORMALISATION):
        return arrays, None
    return arrays, tuple(tuple(map(float, metadata[k].split())) for k in _NORMALISATION)


def _named(loss: Any) -> str:
    if isinstance(loss, str | Module):
        return str(loss)
    return str(getattr(loss, "__qualname__", type(loss).__name__))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else str(value)
