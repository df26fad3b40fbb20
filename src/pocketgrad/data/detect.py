"""Which reader a path needs, told by what lies there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pocketgrad.base.errors import DataError
from pocketgrad.data.api import Dataset
from pocketgrad.data.arrays import npz
from pocketgrad.data.characters import labelled_texts, text
from pocketgrad.data.cifar import cifar10, holds_cifar
from pocketgrad.data.folder import class_names, folder
from pocketgrad.data.mnist import holds_idx, idx
from pocketgrad.data.questions import squad
from pocketgrad.data.translation import pairs

BY_SUFFIX: dict[str, Callable[[Path], Dataset]] = {
    ".csv": labelled_texts,
    ".json": squad,
    ".npz": npz,
    ".tsv": pairs,
    ".txt": text,
}


def read(path: str | Path) -> Dataset:
    """The data set in a file or folder of any kind known here."""
    path = Path(path)
    if holds_cifar(path):
        return cifar10(path)
    if path.suffix in BY_SUFFIX and path.is_file():
        return BY_SUFFIX[path.suffix](path)
    if path.is_dir():
        if holds_idx(path):
            return idx(path)
        if class_names(path) or class_names_below(path):
            return folder(path)
    raise DataError(
        f"'{path}' is of no kind that can be read: give a folder with IDX files (MNIST), CIFAR-10 "
        "batches, or one sub-folder of images per class, or a file: .npz with arrays x and y, "
        ".txt, .tsv of sentence pairs, .csv of classes and texts, .json as SQuAD"
    )


def class_names_below(path: Path) -> bool:
    """Whether it has a ``train`` folder of class folders."""
    return (path / "train").is_dir() and bool(class_names(path / "train"))
