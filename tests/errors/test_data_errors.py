"""What the data part says when it refuses: what was asked, what was found and where, what to do."""

from __future__ import annotations

import errno
import gzip
import importlib
import json
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.image_files import (
    IDX_STEMS,
    idx_bytes,
    png_bytes,
    write_cifar_folder,
    write_idx_folder,
    write_image_folder,
)
from tests.helpers.refusal import refusal

from pocketgrad import data
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.data.images import read_image

FOLDER = importlib.import_module("pocketgrad.data.folder")

X, Y = np.zeros((4, 3), np.float32), np.array([0, 1, 2, 1])


def with_value(value: float, shape: tuple[int, ...], place: tuple[int, ...]) -> Array:
    x = np.zeros(shape, np.float32)
    x[place] = value
    return x


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: data.arrays(X[:0], Y[:0]), "'arrays' is empty; give at least one"),
        (lambda: data.arrays(X, Y[:3]), "4 samples but 3 targets"),
        (lambda: data.arrays(np.array(1, np.float32), Y), "is empty"),
        (lambda: data.arrays(X, Y, classes=2), "label 2 at row 2 is out of range: with 2 classes"),
        (lambda: data.arrays(X, Y - 1), "label -1 at row 0 is out of range"),
        (lambda: data.arrays(X, Y + 2**32, classes=3), "label 4294967296 at row 0 is out of range"),
        (lambda: data.arrays(X, Y, test=(X, Y + 1)), "'arrays/test': label 3 at row 2"),
        (
            lambda: data.arrays(X, Y, test=(X[:, :2], Y)),
            r"sample shape \(3,\), the test part \(2,\)",
        ),
        (lambda: data.arrays(X.astype(np.float64), Y), r"samples are float64.*astype\('float32'\)"),
        (lambda: data.arrays(X, Y.astype(np.float64)), "targets are float64"),
        (
            lambda: data.arrays(X, X, classes=3),
            r"whole-number labels of shape \[N\], found float32",
        ),
        (lambda: data.arrays(np.array(["a", "b"]), Y[:2]), "samples are <U1"),
        (
            lambda: data.arrays(with_value(np.nan, (5000, 2), (4500, 1)), np.zeros(5000, np.int32)),
            r"samples hold nan at index \(4500, 1\); remove",
        ),
        (
            lambda: data.arrays(X, with_value(np.inf, (4, 1), (3, 0))),
            r"targets hold inf at index \(3, 0\)",
        ),
        (
            lambda: data.arrays(np.zeros((4, 32, 32, 3), np.uint8), Y),
            r"channels seem to be last: pass x.transpose\(0, 3, 1, 2\)",
        ),
        (lambda: data.arrays(np.zeros((4, 7, 32, 32), np.uint8), Y), "with 1, 3 or 4 channels$"),
        (lambda: data.Dataset("d", X, Y, (), (0.0,), (1.0, 1.0)), "1 means but 2 deviations"),
        (lambda: data.Dataset("d", X, X, ("a",)), "must be whole numbers, not float32"),
        (lambda: data.arrays(X, Y).test, r"no test part; keep one back with .hold_out\(n\)"),
        (lambda: data.arrays(X, Y).hold_out(4), r"hold_out\(4\) .* 4 samples; choose from 1 to 3"),
        (lambda: data.arrays(X, Y).subset(5), r"subset\(5\) .* choose from 1 to 4"),
    ],
)
def test_arrays_that_cannot_be_trained_on_are_refused(
    call: Callable[[], object], said: str
) -> None:
    assert re.search(said, refusal(call))


def test_a_part_that_is_neither_train_nor_test_is_unknown() -> None:
    said = refusal(lambda: data.arrays(X, Y).split("tset"), UnknownNameError)
    assert "did you mean test" in said


def test_a_batch_larger_than_the_data_names_both_numbers() -> None:
    said = refusal(lambda: data.Loader(data.arrays(X, Y), 64))
    assert "batch size 64 is larger than data set 'arrays' with 4 samples; choose a batch" in said
    assert len(data.Loader(data.arrays(X, Y), 64, shuffle=False)) == 1  # evaluation may


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch": 0}, "batch size 0: choose 1 or more"),
        ({"batch": 2, "prefetch": -1}, "prefetch -1: choose 0"),
        ({"batch": 2, "seed": -1}, "seed -1: choose from 0"),
    ],
)
def test_loader_settings_out_of_range_are_refused(settings: dict[str, Any], said: str) -> None:
    assert said in refusal(lambda: list(data.Loader(data.arrays(X, Y), **settings)), SettingError)


@pytest.mark.parametrize("place", [(0, 2), (-1, 0), (0, -1)])
def test_a_place_outside_the_epoch_is_refused(place: tuple[int, int]) -> None:
    loader = data.Loader(data.arrays(X, Y), 2)
    said = f"no batch {place[1]} in epoch {place[0]}: epochs count from 0, and an epoch has batches"
    assert said in refusal(lambda: loader.batch_at(*place))
    assert said in refusal(lambda: data.Loader(data.arrays(X, Y), 2, start=place))


def test_resuming_other_batches_is_refused() -> None:
    state = data.Loader(data.arrays(X, Y), 2, seed=1).state()
    said = refusal(lambda: data.Loader(data.arrays(X, Y), 2, seed=2).restore(state))
    assert "saved with seed 1, but now seed is 2" in said
    said = refusal(lambda: data.Loader(data.arrays(X[:3], Y[:3]), 2, seed=1).restore(state))
    assert "saved with samples 4, but now samples is 3" in said


def test_nan_in_samples_read_late_names_the_batch() -> None:
    class Lazy:
        shape = (4, 1)
        dtype = np.dtype(np.float32)

        def __len__(self) -> int:
            return 4

        def __getitem__(self, rows: Array) -> Array:
            return np.where(rows[:, None] == 3, np.nan, 0.0).astype(np.float32)

    loader = data.Loader(data.Dataset("late", Lazy(), Y.astype(np.int32)), 2, shuffle=False)
    said = refusal(lambda: list(loader))
    assert "data set 'late', batch 1 of epoch 0: samples hold nan at index (1, 0)" in said


def test_unknown_data_sets_get_a_suggestion() -> None:
    assert "did you mean fashion_mnist" in refusal(
        lambda: data.load("fashion_mnst"), UnknownNameError
    )
    said = refusal(lambda: data.load("./nowhere"))
    assert "no data at './nowhere': there is no such file or folder" in said


def test_a_path_of_no_known_kind_lists_the_kinds(tmp_path: Path) -> None:
    (tmp_path / "notes.doc").write_text("hello")
    for path in (tmp_path, tmp_path / "notes.doc"):
        assert "IDX files (MNIST), CIFAR-10" in refusal(lambda path=path: data.load(path))


HEAD_2 = bytes([0, 0, 8, 3]) + struct.pack(">3I", 20, 5, 4)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not an IDX file: it begins with nothing"),
        (b"\x89PNG", "not an IDX file: it begins with 89 50 4e 47"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 1, 7]), r"has 1 axes \(byte 3\), expected 3"),
        (HEAD_2[:9], "cut off in its header, at byte 9"),
        (HEAD_2 + bytes(39), "header says 20 records, it ends at byte 55 in record 1 "),
        (HEAD_2 + bytes(401), "goes on after its 20 records, which end at byte 416"),
        (bytes([0, 0, 8, 3]) + b"\xff" * 12, "claims the shape"),
        (
            bytes([0, 0, 0x0D, 3]) + struct.pack(">3I", 1, 1, 1) + bytes(4),
            "float32 values, expected",
        ),
        (
            gzip.compress(HEAD_2 + bytes(400))[:-9],
            r"gzip stream breaks in the 1 MiB after byte \d+",
        ),
        (gzip.compress(HEAD_2 + bytes(39)), "it ends at byte 55 in record 1 "),
        (idx_bytes(np.zeros((19, 5, 4), np.uint8)), "holds 19 images but .* 20 labels"),
        (idx_bytes(np.zeros((20, 3, 3), np.uint8)), r"sample shape \(1, 3, 3\), the test part"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_idx_files_are_refused_with_the_place(
    tmp_path: Path, body: bytes, said: str
) -> None:
    write_idx_folder(tmp_path, packed=False)
    (tmp_path / IDX_STEMS[0]).write_bytes(body)
    message = refusal(lambda: data.mnist(tmp_path))
    assert re.search(said, message)
    assert IDX_STEMS[0] in message or "sample shape" in said


def test_a_damaged_gzip_stream_is_refused(tmp_path: Path) -> None:
    write_idx_folder(tmp_path)
    path = tmp_path / f"{IDX_STEMS[0]}.gz"
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 0xFF
    path.write_bytes(bytes(body))
    assert "is damaged or cut off" in refusal(lambda: data.mnist(tmp_path))


def test_labels_out_of_range_in_a_file_name_the_file(tmp_path: Path) -> None:
    write_idx_folder(tmp_path, packed=False)
    (tmp_path / IDX_STEMS[1]).write_bytes(idx_bytes(np.full(20, 12, np.uint8)))
    said = refusal(lambda: data.mnist(tmp_path))
    assert IDX_STEMS[1] in said
    assert "label 12 at row 0 is out of range: with 10 classes" in said


def test_a_missing_file_of_the_four_is_named(tmp_path: Path) -> None:
    write_idx_folder(tmp_path)
    (tmp_path / f"{IDX_STEMS[3]}.gz").unlink()
    assert f"no file '{IDX_STEMS[3]}' or" in refusal(lambda: data.load(tmp_path))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (bytes(3073 + 5), r"ends at byte 3078 in record 1 \(counted from 0\), records have 3073"),
        (b"", "ends at byte 0 in record 0"),
        (bytes(3073) + b"\x0b" + bytes(3072), r"has label 11 in record 1 \(byte 3073\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_cifar_files_are_refused_with_the_place(
    tmp_path: Path, body: bytes, said: str
) -> None:
    write_cifar_folder(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes(body)
    message = refusal(lambda: data.cifar10(tmp_path))
    assert re.search(said, message)
    assert "data_batch_3.bin" in message


def test_missing_and_foreign_cifar_files_are_named(tmp_path: Path) -> None:
    write_cifar_folder(tmp_path / "a")
    (tmp_path / "a" / "data_batch_4.bin").unlink()
    assert "'data_batch_4.bin' is missing" in refusal(lambda: data.cifar10(tmp_path / "a"))
    (tmp_path / "data_batch_1").write_bytes(b"pickle")
    assert "runs code when read" in refusal(lambda: data.cifar10(tmp_path))
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(b"\x1f\x8bnot really")
    assert f"cannot unpack '{archive}'" in refusal(lambda: data.cifar10(archive))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("[1, 2", "is not a JSON list"),
        (json.dumps([1] * 3), r"has labels \[3\] for 5 images"),
        (json.dumps([10] * 5), "label 10 at row 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_cifar_labels_are_refused(tmp_path: Path, labels: str, said: str) -> None:
    for i in range(1, 6):
        (tmp_path / f"data_batch_{i}.png").write_bytes(png_bytes(np.zeros((1, 1024, 3), np.uint8)))
    (tmp_path / "train_lables.json").write_text(labels)
    message = refusal(lambda: data.cifar10(tmp_path))
    assert re.search(said, message)
    assert "train_lables.json" in message
    (tmp_path / "data_batch_1.png").write_bytes(png_bytes(np.zeros((1, 9, 3), np.uint8)))
    assert "lines of 9 pixels" in refusal(lambda: data.cifar10(tmp_path))


def test_npz_files_without_the_names_or_with_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=X)
    assert "holds images; expected arrays named x and y" in refusal(
        lambda: data.npz(tmp_path / "a.npz")
    )
    np.savez(tmp_path / "b.npz", x=np.array([{}], dtype=object), y=Y[:1])
    assert "as an .npz file of plain arrays" in refusal(lambda: data.npz(tmp_path / "b.npz"))
    for body in (b"", b"nonsense", (tmp_path / "a.npz").read_bytes()[:200]):
        (tmp_path / "c.npz").write_bytes(body)
        assert "cannot read" in refusal(lambda: data.npz(tmp_path / "c.npz"))
    assert "cannot read" in refusal(lambda: data.npz(tmp_path / "missing.npz"))
    with (tmp_path / "d.npz").open("wb") as file:
        np.save(file, X)
    assert "holds a single array" in refusal(lambda: data.npz(tmp_path / "d.npz"))


PNG = png_bytes(np.arange(60, dtype=np.uint8).reshape(4, 5, 3))


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("a.png", b"GIF89a", "not a PNG file, or is cut off in its first 33 bytes"),
        ("a.png", PNG[:50], "ends at byte 50 in the chunk at byte 33"),
        ("a.png", PNG[:45] + b"\0" + PNG[46:], "chunk at byte 33 has a wrong check sum"),
        (
            "a.png",
            png_bytes(np.zeros((2, 2, 1), np.uint8) + 3, palette=bytes(6)),
            "uses colour 3 of a",
        ),
        (
            "a.png",
            PNG[:16] + bytes(17),
            "0 x 0",
        ),
        ("a.ppm", b"P3\n1 1\n255\n1 2 3", "not a binary PGM"),
        ("a.ppm", b"P6 2 2 65535\n" + bytes(24), "with values up to 255"),
        ("a.pgm", b"P5 2 2 255\n" + bytes(3), "it ends at byte 14, expected 15"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_images_are_refused_with_the_place(
    tmp_path: Path, name: str, body: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(body)
    message = refusal(lambda: read_image(tmp_path / name))
    assert said in message
    assert name in message


def test_images_that_need_pillow_say_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "b.png").write_bytes(png_bytes(np.zeros((2, 2, 1), np.uint8), depth=16))
    for name in ("a.jpg", "b.png"):
        said = refusal(lambda name=name: read_image(tmp_path / name))
        assert "needs Pillow: pip install 'pocketgrad[images]'" in said


def test_image_folders_that_do_not_agree_are_refused(tmp_path: Path) -> None:
    write_image_folder(tmp_path)
    other = tmp_path / "dog" / "9.png"
    other.write_bytes(png_bytes(np.zeros((9, 5, 3), np.uint8)))
    said = refusal(lambda: data.folder(tmp_path))
    assert f"'{other}' is colour 9 x 5 but" in said
    assert "is colour 6 x 5; make them equal, or pass size=(height, width)" in said
    other.write_bytes(png_bytes(np.zeros((6, 5, 1), np.uint8)))
    assert f"'{other}' is grey 6 x 5 but" in refusal(lambda: data.folder(tmp_path))


def test_image_folders_without_images_are_refused(tmp_path: Path) -> None:
    assert "expected one sub-folder per class" in refusal(lambda: data.folder(tmp_path))
    write_image_folder(tmp_path)
    (tmp_path / "emu").mkdir()
    assert f"class folder '{tmp_path / 'emu'}' holds no image" in refusal(
        lambda: data.folder(tmp_path)
    )
    assert "cannot read" in refusal(lambda: data.folder(tmp_path / "nowhere"))
    assert "channels is 1" in refusal(lambda: data.folder(tmp_path, channels=2), SettingError)


def test_test_folders_with_classes_of_their_own_are_refused(tmp_path: Path) -> None:
    write_image_folder(tmp_path / "train")
    write_image_folder(tmp_path / "test", ("cat", "emu"))
    assert "has not: emu" in refusal(lambda: data.folder(tmp_path))


def test_an_image_that_changed_since_the_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FOLDER, "KEEP_NBYTES", 0)
    made = data.folder(write_image_folder(tmp_path))
    (tmp_path / "cat" / "0.png").write_bytes(png_bytes(np.zeros((2, 2, 3), np.uint8)))
    said = refusal(lambda: data.Loader(made, 6).batch_at(0, 0))
    assert "is now colour 2 x 2, it was colour 6 x 5" in said


def test_synthetic_refuses_sizes_below_one() -> None:
    assert "choose at least 1 sample, 2 classes" in refusal(lambda: data.synthetic(0), SettingError)


def test_a_file_without_the_right_to_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_idx_folder(tmp_path)

    def denied(self: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    said = refusal(lambda: data.mnist(tmp_path))
    assert f"cannot read '{tmp_path / IDX_STEMS[0]}.gz': Permission denied" in said
