"""Made-up images that can be learned: for tests, and for trying a shape without a download."""

from __future__ import annotations

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError
from pocketgrad.data.api import Dataset, channel_stats

_CELL = 4  # pixels on a side of one patch of a class pattern: coarse enough for a convolution


def synthetic(
    samples: int = 1024,
    shape: tuple[int, int, int] = (1, 28, 28),
    classes: int = 10,
    *,
    test: int = 256,
    seed: int = 0,
) -> Dataset:
    """Images ``shape`` = (C, H, W) of one pattern per class under as much noise, balanced classes.

    Whole-number arithmetic on raw random bits: the same bytes everywhere.
    """
    if samples < 1 or test < 0 or classes < 2 or min(shape) < 1:
        raise SettingError(
            f"synthetic(samples={samples}, shape={shape}, classes={classes}, test={test}): "
            "choose at least 1 sample, 2 classes and sizes of 1"
        )
    c, h, w = shape
    coarse = _bytes(seed, 0, classes * c * -(-h // _CELL) * -(-w // _CELL))
    patterns = coarse.reshape(classes, c, -(-h // _CELL), -(-w // _CELL))
    patterns = patterns.repeat(_CELL, axis=2).repeat(_CELL, axis=3)[:, :, :h, :w]
    names = tuple(str(i) for i in range(classes))

    def part(n: int, stream: int) -> tuple[Array, Array]:
        labels = (np.arange(n) % classes).astype(np.int32)
        noise = _bytes(seed, stream, n * c * h * w).reshape(n, c, h, w)
        mixed = (patterns[labels].astype(np.uint16) + noise) // 2
        return mixed.astype(np.uint8), labels

    x, y = part(samples, 1)
    mean, std = channel_stats(x)
    held_out = Dataset("synthetic/test", *part(test, 2), names, mean, std) if test else None
    return Dataset("synthetic", x, y, names, mean, std, held_out)


def _bytes(seed: int, stream: int, n: int) -> Array:
    raw = np.random.Philox(key=np.array([seed, stream], np.uint64)).random_raw(-(-n // 8))
    return raw.astype("<u8").view(np.uint8)[:n]
