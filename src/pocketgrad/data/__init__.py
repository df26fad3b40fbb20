"""Data sets and the batches made of them: bytes as stored, shuffled by seed, read ahead.

``load("fashion_mnist")`` or ``load("some/folder")`` gives a `Dataset`; `Loader` gives its batches.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pocketgrad.base.errors import DataError, UnknownNameError
from pocketgrad.data.api import Dataset
from pocketgrad.data.arrays import arrays, npz
from pocketgrad.data.batch import Batch, Samples
from pocketgrad.data.characters import authors, labelled_texts, moby_dick, shakespeare, text
from pocketgrad.data.cifar import cifar10
from pocketgrad.data.detect import read
from pocketgrad.data.environments import ENVIRONMENTS, Environment, environment
from pocketgrad.data.experience import Experience, Policy, play
from pocketgrad.data.fetch import Remote, download
from pocketgrad.data.files import read_text
from pocketgrad.data.folder import folder
from pocketgrad.data.loader import Loader
from pocketgrad.data.mnist import embedded, fashion_mnist, idx, mnist
from pocketgrad.data.questions import spans, squad
from pocketgrad.data.synthetic import synthetic
from pocketgrad.data.translation import pairs, reversal

# Data sets that `load` knows by name: they can be had without an argument.
ALL: dict[str, Callable[[], Dataset]] = {
    "authors": authors,
    "cifar10": cifar10,
    "embedded": embedded,
    "fashion_mnist": fashion_mnist,
    "mnist": mnist,
    "moby_dick": moby_dick,
    "reversal": reversal,
    "shakespeare": shakespeare,
    "spans": spans,
    "synthetic": synthetic,
}

__all__ = [
    "ALL",
    "ENVIRONMENTS",
    "Batch",
    "Dataset",
    "Environment",
    "Experience",
    "Loader",
    "Policy",
    "Remote",
    "Samples",
    "arrays",
    "authors",
    "cifar10",
    "download",
    "embedded",
    "environment",
    "fashion_mnist",
    "folder",
    "idx",
    "labelled_texts",
    "load",
    "mnist",
    "moby_dick",
    "npz",
    "pairs",
    "play",
    "read",
    "read_text",
    "reversal",
    "shakespeare",
    "spans",
    "squad",
    "synthetic",
    "text",
]


def load(name_or_path: str | Path) -> Dataset:
    """The data set of that name ('fashion-mnist' works too), or the one in that file or folder."""
    text = str(name_or_path)
    name = text.replace("-", "_")
    if not isinstance(name_or_path, Path) and name in ALL:
        return ALL[name]()
    path = Path(name_or_path).expanduser()
    if path.exists():
        return read(path)
    if isinstance(name_or_path, Path) or any(mark in text for mark in "/\\.~"):
        raise DataError(
            f"no data at '{text}': there is no such file or folder; give an existing path "
            f"or one of the names {', '.join(ALL)}"
        )
    raise UnknownNameError("data set", text, ALL)
