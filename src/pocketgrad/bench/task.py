"""A workload, and the folder in which every participant finds it: network, weights, batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import PocketgradError
from pocketgrad.bench.network import Network, network_from_json


class NotWrittenError(PocketgradError):
    """A peer has no form of the model, or of something in it: an outcome, not a failure."""


@dataclass(frozen=True)
class Workload:
    """What is trained, never how. Losses are cross-entropy; the optimizer is SGD with momentum."""

    model: str
    batch: int
    image: int | None = None
    seed: int = 0
    lr: float = 0.005
    momentum: float = 0.9
    batches: int = 2  # distinct ones, used in turn
    numerics: str = "fast"  # of ours: whether Winograd's convolutions are allowed

    @property
    def title(self) -> str:
        """As people name it."""
        image = f", image {self.image}" if self.image else ""
        return f"{self.model}, batch {self.batch}{image}"

    @property
    def slug(self) -> str:
        """As a file is named."""
        image = f"-i{self.image}" if self.image else ""
        return f"{self.model}-b{self.batch}{image}"

    def to_json(self) -> dict[str, Any]:
        """Its fields."""
        return asdict(self)


class Weights(Mapping[str, Array]):
    """Arrays of an .npz file, each read when it is asked for, so that no process need hold them."""

    def __init__(self, path: Path) -> None:
        self._file = np.load(path)

    def __getitem__(self, name: str) -> Array:
        array: Array = self._file[name]
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.files)

    def __len__(self) -> int:
        return len(self._file.files)


@dataclass(frozen=True, eq=False)
class Task:
    """A workload as an adapter gets it. ``options``: those our own model is made with."""

    workload: Workload
    options: Mapping[str, Any]
    weights: Mapping[str, Array]
    batches: tuple[tuple[Array, Array], ...]
    threads: int
    described: Network | None = None
    unwritten: str = ""  # why there is no description

    @property
    def network(self) -> Network:
        """The description; NotWrittenError where the model has none."""
        if self.described is None:
            raise NotWrittenError(self.unwritten)
        return self.described


def load_task(folder: Path, threads: int) -> Task:
    """What `prepare` wrote."""
    about = json.loads((folder / "task.json").read_text())
    workload = Workload(**about["workload"])
    with np.load(folder / "batches.npz") as file:
        batches = tuple((file[f"x{i}"], file[f"y{i}"]) for i in range(workload.batches))
    network = network_from_json(about["network"]) if "network" in about else None
    weights = Weights(folder / "weights.npz")
    options, why = about["options"], about.get("unwritten", "")
    return Task(workload, options, weights, batches, threads, network, why)
