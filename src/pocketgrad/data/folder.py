"""Image folders: one sub-folder per class, or ``train`` and ``test`` folders of those.

Images are decoded when a batch asks for them, and kept where all of them fit in a set amount.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, SettingError
from pocketgrad.data.api import Dataset, channel_stats
from pocketgrad.data.images import SUFFIXES, image_shape, read_image, resized, with_channels

KEEP_NBYTES = 256 << 20  # data sets up to this size stay decoded in memory
_TEST_NAMES = ("test", "val", "valid", "validation")
_STATS_IMAGES = 256  # images that mean and deviation are taken from, spread over the classes


def folder(
    path: str | Path,
    *,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
) -> Dataset:
    """The images below ``path``; the classes are the sub-folders' names, sorted.

    ``size`` (height, width) resizes, ``channels`` (1 grey, 3 colour) converts; without them all
    images must agree. With ``train`` and ``test`` (or ``val``) folders the latter is held out.
    """
    path = Path(path)
    if channels not in (None, 1, 3) or (size is not None and min(size) < 1):
        raise SettingError(
            f"folder(size={size}, channels={channels}): size is (height, width) of at least 1, "
            "channels is 1 (grey) or 3 (colour)"
        )
    test_path = next((path / n for n in _TEST_NAMES if (path / n).is_dir()), None)
    split = test_path is not None and (path / "train").is_dir()
    train_path = path / "train" if split else path
    classes = class_names(train_path)
    if not classes:
        raise DataError(
            f"no image folders in '{path}': expected one sub-folder per class with files "
            f"{', '.join(SUFFIXES)}"
        )
    files, labels = _listed(train_path, classes)
    samples = _Images.checked(files, size, channels)
    few = np.unique(np.linspace(0, len(files) - 1, min(len(files), _STATS_IMAGES)).astype(np.int64))
    mean, std = channel_stats(samples[few])
    name, test = path.resolve().name, None
    if split and test_path is not None:
        unknown = sorted(set(class_names(test_path)) - set(classes))
        if unknown:
            raise DataError(
                f"'{test_path}' has classes that '{train_path}' has not: {', '.join(unknown)}"
            )
        test_files, test_labels = _listed(test_path, class_names(test_path), classes)
        test_samples = _Images.checked(test_files, size, channels)
        test = Dataset(f"{name}/test", test_samples, test_labels, classes, mean, std)
    return Dataset(name, samples, labels, classes, mean, std, test)


def class_names(path: Path) -> tuple[str, ...]:
    """The sub-folders, sorted, if at least one of them holds an image; else none."""
    try:
        folders = sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError as error:
        raise DataError(f"cannot read '{path}': {error.strerror or error}") from error
    return tuple(p.name for p in folders) if any(_images_in(p) for p in folders) else ()


def _images_in(path: Path) -> list[Path]:
    hidden = (p for p in path.iterdir() if not p.name.startswith("."))
    return sorted(p for p in hidden if p.suffix.lower() in SUFFIXES and p.is_file())


def _listed(
    path: Path, present: tuple[str, ...], classes: tuple[str, ...] | None = None
) -> tuple[tuple[Path, ...], Array]:
    """All image files, and the label of each: the place of its folder's name in ``classes``."""
    files: list[Path] = []
    labels: list[int] = []
    for name in present:
        found = _images_in(path / name)
        if not found:
            raise DataError(f"class folder '{path / name}' holds no image; fill it or remove it")
        files += found
        labels += [(classes or present).index(name)] * len(found)
    if not files:
        raise DataError(f"no images in '{path}'; expected one sub-folder per class")
    return tuple(files), np.array(labels, np.int32)


@dataclass(eq=False)
class _Images:
    """Image files of one shape that are decoded when indexed."""

    files: tuple[Path, ...]
    sample: tuple[int, int, int]
    size: tuple[int, int] | None
    channels: int | None
    dtype: Any = field(default=np.dtype(np.uint8))  # Any: as in Samples
    _kept: Array | None = None
    _present: Array | None = None

    @classmethod
    def checked(
        cls, files: tuple[Path, ...], size: tuple[int, int] | None, channels: int | None
    ) -> _Images:
        """After a look at every file's header: those that differ are an error here, not later."""
        first: tuple[int, int, int] | None = None
        for path in files:
            c, h, w = image_shape(path)
            shape = (channels or c, *(size or (h, w)))
            first = first or shape
            if shape != first:
                raise DataError(
                    f"'{path}' is {_said(shape)} but '{files[0]}' is {_said(first)}; "
                    "make them equal, or pass size=(height, width), channels=1 or 3"
                )
        if first is None:
            raise DataError("an image data set needs at least one image")
        return cls(files, first, size, channels)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.files), *self.sample)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, rows: Any, /) -> Array:  # Any: as in Samples
        wanted = np.atleast_1d(np.arange(len(self.files))[rows])
        out = np.empty((len(wanted), *self.sample), np.uint8)
        for i, row in enumerate(wanted):
            out[i] = self._image(int(row))
        return out if np.ndim(np.arange(len(self.files))[rows]) else out[0]

    def _image(self, row: int) -> Array:
        if self._kept is None or self._present is None:
            nbytes = int(np.prod(self.shape))
            self._present = np.zeros(len(self.files), bool)
            self._kept = np.empty(self.shape if nbytes <= KEEP_NBYTES else (0,), np.uint8)
        if self._present[row]:
            kept: Array = self._kept[row]
            return kept
        image = self._decoded(self.files[row])
        if len(self._kept):
            self._kept[row] = image
            self._present[row] = True
        return image

    def _decoded(self, path: Path) -> Array:
        image = read_image(path)
        if self.channels is not None:
            image = with_channels(image, self.channels)
        if self.size is not None and image.shape[1:] != self.size:
            image = resized(image, *self.size)
        if image.shape != self.sample:
            raise DataError(
                f"'{path}' is now {_said(image.shape)}, it was {_said(self.sample)} at the start"
            )
        return image


def _said(shape: tuple[int, ...]) -> str:
    return f"{'grey' if shape[0] == 1 else 'colour'} {shape[1]} x {shape[2]}"
