"""Batches from whatever the user has: a data set, a loader, or any iterable of batches.

Found by what they can do, so that the loop depends on no data module. A data set has
``loader(batch, seed)``; a loader has ``restore(state)`` and ``dataset``; a batch is an object with
``x``, ``y`` and maybe ``weight``, or a tuple (x, y) or (x, y, weight).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pocketgrad.base.dtypes import Array, dtype_of
from pocketgrad.base.errors import DataError, DtypeError, SettingError, ShapeError
from pocketgrad.ir.core import TensorType
from pocketgrad.train.step import Inputs, Stored

Source = Any  # a data set, a loader or an iterable of batches: told apart by what they can do


@dataclass(frozen=True, eq=False)
class Batch:
    """Arrays of one step. ``count`` samples are real, the others filled up with weight 0."""

    x: Array
    y: Array
    weight: Array
    count: int


class Feed(Protocol):
    """Batches by epoch, in an order that can be taken up again at any place."""

    name: str
    stored: Stored

    def per_epoch(self) -> int | None:
        """Batches in an epoch, if known."""

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from number ``start`` on."""

    def identity(self) -> dict[str, Any]:
        """What the batches depend on: equal identities give equal batches. Fits in JSON."""


def feed_of(source: Source, batch: int, seed: int = 0, *, shuffle: bool = True) -> Feed:
    """The batches of a source; ``batch`` and ``seed`` are for data sets, others have their own."""
    if hasattr(source, "loader"):
        return LoaderFeed(source.loader(batch, seed=seed, shuffle=shuffle))
    if hasattr(source, "restore") and hasattr(source, "dataset"):
        return LoaderFeed(source)
    if isinstance(source, np.ndarray) or _is_pair(source):
        raise DataError(
            "whole arrays were given where batches are expected; "
            "wrap them: pg.data.arrays(x, y), which is shuffled and divided into batches"
        )
    if not isinstance(source, Iterable):
        raise DataError(
            f"a {type(source).__name__} gives no batches; pass a data set (pg.data.load(…), "
            "pg.data.arrays(x, y)), a Loader, or a list of (x, y)"
        )
    return IterableFeed(source)


def inputs_of(x: Array, y: Array, stored: Stored = Stored()) -> Inputs:  # noqa: B008  # frozen
    """The types of a batch given as arrays."""
    return Inputs(TensorType(x.shape, dtype_of(x)), TensorType(y.shape, dtype_of(y)), stored)


def checked(x: Any, y: Any, weight: Any = None) -> Batch:
    """One batch given by the user, as arrays that fit together."""
    xs, ys = as_input("x", x), as_input("y", y)
    if ys.ndim == 0 or len(xs) != len(ys):
        raise ShapeError(
            f"x has {len(xs)} samples but y has shape {ys.shape}; give one target per sample"
        )
    if weight is None:
        ws = np.ones(len(xs), np.float32)
    else:
        ws = np.ascontiguousarray(weight, np.float32)
        if ws.shape != (len(xs),):
            raise ShapeError(
                f"weight has shape {ws.shape}, expected ({len(xs)},): one number per sample"
            )
    return Batch(xs, ys, ws, int(np.count_nonzero(ws)))


def as_input(what: str, value: Any) -> Array:
    """An array of samples a device takes."""
    array: Array = np.ascontiguousarray(value)
    if np.ndim(value) == 0 or len(array) == 0:  # ascontiguousarray makes a number an array of one
        raise ShapeError(f"{what} has shape {np.shape(array)}; give at least one sample")
    if array.dtype == np.float64:
        raise DtypeError(
            f"{what} is float64; devices compute in float32: convert with .astype('float32')"
        )
    try:
        dtype_of(array)
    except DtypeError as error:
        raise DtypeError(f"{what}: {error}") from None
    return array


class LoaderFeed:
    """A loader of ours: it can begin anywhere."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        dataset = loader.dataset
        self.name = str(dataset.name)
        self.stored = Stored.of(dataset)

    def per_epoch(self) -> int:
        return len(self.loader)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        if start >= len(self.loader):
            return
        self.loader.restore(self.loader.state() | {"epoch": epoch, "index": start})
        for b in self.loader:
            weight = np.ones(len(b.x), np.float32) if b.weight is None else b.weight
            yield Batch(b.x, b.y, weight, b.count)

    def identity(self) -> dict[str, Any]:
        dataset = self.loader.dataset
        places = ("epoch", "index")
        made_by = {k: v for k, v in self.loader.state().items() if k not in places}
        return {
            "name": self.name,
            "sample": f"{dataset.x.dtype}{list(dataset.x.shape[1:])}",
            "labels_crc": zlib.crc32(np.ascontiguousarray(dataset.y).tobytes()),
            **self.stored.to_json(),
            **made_by,
        }


class IterableFeed:
    """Batches of the user's own making. Shorter ones are filled up to the size of the first."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self.batches = batches
        self.name = str(getattr(batches, "name", "batches"))
        self.stored = Stored.of(batches)
        self._size = 0

    def per_epoch(self) -> int | None:
        return len(self.batches) if isinstance(self.batches, Sized) else None

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        found = 0
        for index, given in enumerate(self.batches):
            found += 1
            batch = _from_user(given, index)
            self._size = self._size or len(batch.x)
            if index >= start:
                yield _filled(batch, self._size, index)
        if found == 0:
            raise DataError(
                f"there is no batch in epoch {epoch}: the source of batches is empty. A generator "
                "can be read once only; pass a list, a Loader or a data set"
            )

    def identity(self) -> dict[str, Any]:
        return {"name": self.name}


def _is_pair(source: object) -> bool:
    """Whether this is (x, y) of everything, not a tuple of batches."""
    return isinstance(source, tuple) and len(source) in (2, 3) and isinstance(source[0], np.ndarray)


def _from_user(given: Any, index: int) -> Batch:
    try:
        if hasattr(given, "x") and hasattr(given, "y"):
            return checked(given.x, given.y, getattr(given, "weight", None))
        parts = tuple(given) if isinstance(given, tuple | list) else ()
        if len(parts) not in (2, 3):
            raise DataError(
                f"it is a {type(given).__name__}, expected (x, y), (x, y, weight), "
                "or an object with x and y"
            )
        return checked(*parts)
    except (DataError, ShapeError, DtypeError) as error:
        raise type(error)(f"batch {index}: {error}") from None


def _filled(batch: Batch, size: int, index: int) -> Batch:
    """Repeat samples with weight 0 up to the size all batches have."""
    n = len(batch.x)
    if n == size:
        return batch
    if n > size:
        raise ShapeError(
            f"batch {index} has {n} samples, the first one {size}; make the first the largest"
        )
    rows = np.resize(np.arange(n), size)
    weight = np.zeros(size, np.float32)
    weight[:n] = batch.weight
    return Batch(batch.x[rows], batch.y[rows], weight, batch.count)


def padded(x: Array, size: int) -> Array:
    """Rows repeated up to ``size``; the caller drops what is too much."""
    return x if len(x) == size else np.ascontiguousarray(x[np.resize(np.arange(len(x)), size)])


def check_batch(size: int, seed: int) -> None:
    """Refuse sizes and seeds that cannot be."""
    if size < 1:
        raise SettingError(f"batch size {size}: choose 1 or more")
    if not 0 <= seed < 2**31:
        raise SettingError(f"seed {seed}: choose from 0 to 2^31 - 1")
