"""Data sets from NumPy arrays, in memory or in an .npz file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.api import Dataset, channel_stats, check_labels

_CHANNELS = (1, 3, 4)
_KEYS = (("x_train", "y_train", "x_test", "y_test"), ("x", "y", "x_test", "y_test"))


def arrays(
    x: Array,
    y: Array,
    *,
    classes: int | Sequence[str] | None = None,
    test: tuple[Array, Array] | None = None,
    name: str = "arrays",
) -> Dataset:
    """A data set from samples and targets; whole-number targets ``[N]`` count as class labels.

    Grey images ``[N, H, W]`` of uint8 get a channel axis. ``classes``: how many, or their names;
    by default as many as the largest label says. Labels become int32; nothing else is converted.
    """
    x, y = np.asarray(x), np.asarray(y)
    labelled = y.ndim == 1 and y.dtype.kind in "iu"
    if classes is not None and not labelled:
        raise DataError(
            f"data set '{name}': classes need whole-number labels of shape [N], "
            f"found {y.dtype} {list(y.shape)}"
        )
    names = _class_names(classes, y) if labelled else ()
    x = _as_samples(name, x)
    mean, std = channel_stats(x)
    held_out = None
    if test is not None:
        tx, ty = np.asarray(test[0]), np.asarray(test[1])
        targets = _as_targets(f"{name}/test", ty, names)
        held_out = Dataset(
            f"{name}/test", _as_samples(f"{name}/test", tx), targets, names, mean, std
        )
    return Dataset(name, x, _as_targets(name, y, names), names, mean, std, held_out)


def npz(path: str | Path) -> Dataset:
    """A data set from an .npz file with x, y or x_train, y_train, and maybe x_test, y_test."""
    import zlib
    from zipfile import BadZipFile

    path = Path(path)
    try:
        with path.open("rb") as file:
            members = np.load(file, allow_pickle=False)
            if isinstance(members, np.ndarray):
                raise ValueError("it holds a single array without a name")
            found = {key: members[key] for key in members.files}
    except (OSError, ValueError, EOFError, zlib.error, BadZipFile) as error:
        raise DataError(
            f"cannot read '{path}' as an .npz file of plain arrays: {error}; "
            "write it with numpy.savez"
        ) from error
    for x, y, test_x, test_y in _KEYS:
        if x in found and y in found:
            test = (found[test_x], found[test_y]) if {test_x, test_y} <= found.keys() else None
            return arrays(found[x], found[y], test=test, name=path.stem)
    raise DataError(
        f"'{path}' holds {', '.join(sorted(found)) or 'nothing'}; expected arrays named x and y, "
        "or x_train and y_train (and x_test, y_test for testing)"
    )


def _class_names(classes: int | Sequence[str] | None, y: Array) -> tuple[str, ...]:
    if classes is None:
        classes = int(y.max(initial=0)) + 1
    if isinstance(classes, int):
        return tuple(str(i) for i in range(classes))
    return tuple(classes)


def _as_samples(name: str, x: Array) -> Array:
    if x.dtype == np.uint8 and x.ndim == 3:
        return x[:, None]
    if x.dtype == np.uint8 and x.ndim == 4 and x.shape[1] not in _CHANNELS:
        advice = "; the channels seem to be last: pass x.transpose(0, 3, 1, 2)"
        raise DataError(
            f"data set '{name}': images of shape {list(x.shape)}, expected [N, C, H, W] with "
            f"1, 3 or 4 channels{advice if x.shape[3] in _CHANNELS else ''}"
        )
    return x


def _as_targets(name: str, y: Array, classes: tuple[str, ...]) -> Array:
    if not classes:
        return y
    check_labels(name, y, len(classes))  # before the conversion, which could wrap around
    return np.ascontiguousarray(y, dtype=np.int32)
