"""Data sets: what the constructors fill in, splits, names, and that all of them keep the rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.helpers.image_files import write_cifar_folder, write_idx_folder, write_image_folder

from pocketgrad import data
from pocketgrad.data.api import channel_stats


def test_arrays_infers_classes_and_adds_the_channel_of_grey_images() -> None:
    made = data.arrays(np.zeros((4, 5, 6), np.uint8), np.array([0, 2, 1, 2]))
    assert made.x.shape == (4, 1, 5, 6)
    assert made.classes == ("0", "1", "2")
    assert made.y.dtype == np.int32
    assert made.sample_shape == (1, 5, 6)


def test_float_targets_are_kept_as_they_are() -> None:
    made = data.arrays(np.zeros((4, 5), np.float32), np.ones((4, 2), np.float32))
    assert made.classes == ()
    assert (made.mean, made.std) == ((0.0,), (1.0,))


def test_mean_and_deviation_are_per_channel_on_the_stored_scale() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (50, 3, 4, 4)).astype(np.uint8)
    x[:, 2] = 7
    mean, std = channel_stats(x)
    np.testing.assert_allclose(mean, x.mean(axis=(0, 2, 3)), atol=1e-3)
    np.testing.assert_allclose(std[:2], x.std(axis=(0, 2, 3))[:2], atol=1e-3)
    assert std[2] == 1.0  # no contrast: dividing by the deviation would give NaN


def test_hold_out_keeps_back_other_samples_than_it_leaves() -> None:
    x = np.arange(20, dtype=np.float32)[:, None]
    whole = data.arrays(x, np.arange(20) % 2)
    split = whole.hold_out(5, seed=1)
    assert (len(split), len(split.test)) == (15, 5)
    assert sorted([*split.x[:][:, 0], *split.test.x[:][:, 0]]) == list(range(20))
    assert split.split("train") is split.train is split
    assert split.split("test") is split.test
    assert whole.hold_out(5, seed=1).test.x[:].tolist() == split.test.x[:].tolist()
    assert whole.hold_out(5, seed=2).test.x[:].tolist() != split.test.x[:].tolist()


def test_a_subset_is_smaller_and_keeps_the_test_part() -> None:
    small = data.synthetic(100, (1, 4, 4), test=20).subset(10)
    assert (len(small), len(small.test)) == (10, 20)


def test_synthetic_data_depend_on_the_seed_alone() -> None:
    a, b, c = (data.synthetic(30, (3, 5, 6), 4, test=8, seed=seed) for seed in (1, 1, 2))
    assert a.x.shape == (30, 3, 5, 6)
    assert a.x[:].tobytes() == b.x[:].tobytes() != c.x[:].tobytes()
    assert a.x[:8].tobytes() != a.test.x[:].tobytes()


def test_synthetic_data_can_be_learned() -> None:
    """The nearest class mean of the training part names nearly all of the test part."""
    made = data.synthetic(400, (1, 12, 12), 10, test=200)
    x, tx = (part.x[:].reshape(len(part), -1).astype(np.float64) for part in (made, made.test))
    means = np.stack([x[made.y == k].mean(axis=0) for k in range(10)])
    guess = ((tx[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (guess == made.test.y).mean() > 0.95


def test_the_embedded_data_are_as_described() -> None:
    made = data.embedded()
    assert made.x.shape == (8500, 1, 28, 28)
    assert made.test.x.shape == (1500, 1, 28, 28)
    assert made.x.dtype == np.uint8
    assert np.bincount(made.y).tolist() == [850] * 10
    assert np.bincount(made.test.y).tolist() == [150] * 10
    assert made.classes[9] == "Ankle boot"
    train = {image.tobytes() for image in made.x[:]}
    assert not any(image.tobytes() in train for image in made.test.x[:])


def test_the_embedded_files_are_small_and_licensed() -> None:
    from pocketgrad.data.mnist import EMBEDDED_FOLDER

    assert sum(path.stat().st_size for path in EMBEDDED_FOLDER.iterdir()) < 5_000_000
    assert "Zalando" in (EMBEDDED_FOLDER / "LICENSE").read_text()


def test_names_are_sorted_and_exported() -> None:
    assert list(data.ALL) == sorted(data.ALL)
    assert set(data.ALL) <= set(data.__all__)
    assert data.__all__ == sorted(data.__all__, key=lambda n: (not n.isupper(), n.islower(), n))


@pytest.mark.parametrize("name", ["embedded", "synthetic"])
def test_load_gives_what_the_function_gives(name: str) -> None:
    a, b = data.load(name), data.ALL[name]()
    assert (a.name, a.x[:].tobytes(), a.test.y.tobytes()) == (
        b.name,
        b.x[:].tobytes(),
        b.test.y.tobytes(),
    )


def test_load_tells_the_kinds_of_files_apart(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "digits")
    write_cifar_folder(tmp_path / "cifar" / "cifar-10-batches-bin")
    write_image_folder(tmp_path / "pets")
    write_image_folder(tmp_path / "split" / "train")
    write_image_folder(tmp_path / "split" / "test", n=1)
    np.savez(tmp_path / "own.npz", x=np.zeros((3, 4), np.float32), y=np.arange(3))
    shapes = {
        "digits": (20, 1, 5, 4),
        "cifar": (20, 3, 32, 32),
        "pets": (6, 3, 6, 5),
        "split": (6, 3, 6, 5),
        "own.npz": (3, 4),
    }
    for name, shape in shapes.items():
        assert data.load(tmp_path / name).x.shape == shape
        assert data.load(str(tmp_path / name)).x.shape == shape
    assert len(data.load(tmp_path / "split").test) == 2


def test_npz_files_with_keras_names_have_a_test_part(tmp_path: Path) -> None:
    x, y = np.zeros((6, 4, 4), np.uint8), np.arange(6)
    np.savez(tmp_path / "k.npz", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    made = data.npz(tmp_path / "k.npz")
    assert (made.name, len(made), len(made.test)) == ("k", 6, 2)
