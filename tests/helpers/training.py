"""A small model on small data, and a backend that counts what is allocated."""

from __future__ import annotations

from typing import Any

import numpy as np

import pocketgrad as pg
from pocketgrad.backends import open_backend
from pocketgrad.data import Dataset
from pocketgrad.nn.module import Module


def small_net(dropout: float = 0.0) -> Module:
    """16 inputs, batch norm, dropout if asked, three classes."""
    nn = pg.nn
    parts = [nn.Flatten(), nn.Linear(16, 12), nn.BatchNorm1d(12), nn.ReLU()]
    if dropout:
        parts.append(nn.Dropout(dropout))
    return nn.Sequential(*parts, nn.Linear(12, 3))


def plain_net() -> Module:
    """16 inputs, three classes; every sample counts for itself (no batch norm)."""
    nn = pg.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 3))


def small_data(samples: int = 96, test: int = 40) -> Dataset:
    """Learnable 4×4 images of three classes."""
    return pg.data.synthetic(samples, (1, 4, 4), 3, test=test)


def sgd(lr: float = 0.05) -> pg.optim.SGD:
    """With momentum, so that there is optimizer state to lose."""
    return pg.optim.SGD(lr, momentum=0.9)


class Counting:
    """Any backend, with the bytes of all its buffers counted."""

    def __init__(self, selector: str) -> None:
        self.inner: Any = open_backend(selector)
        self.allocated_nbytes = 0
        self.reads = self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def alloc(self, nbytes: int) -> Any:
        """A buffer, counted."""
        self.allocated_nbytes += nbytes
        return self.inner.alloc(nbytes)

    def read(self, buffer: Any, offset: int, out: Any) -> None:
        """A read, counted."""
        self.reads += 1
        self.inner.read(buffer, offset, out)


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether two sets of arrays are equal in every bit."""
    return a.keys() == b.keys() and all(
        np.asarray(a[n]).tobytes() == np.asarray(b[n]).tobytes() for n in a
    )
