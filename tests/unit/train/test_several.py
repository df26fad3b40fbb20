"""Several inputs, several outputs, several losses, and images changed at random, in one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.evaluate import evaluate

import pocketgrad as pg
from pocketgrad.base.dtypes import dtype_of, int32
from pocketgrad.base.errors import SettingError, ShapeError, UnknownNameError
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.module import Module
from pocketgrad.ops.arithmetic import add, mul
from pocketgrad.ops.loss import cross_entropy, mse
from pocketgrad.ops.reduce import sum_
from pocketgrad.ops.tensor import Tensor
from pocketgrad.train.augment import Augment
from pocketgrad.train.step import Stored


class Two(Module):
    """Two inputs, each with a layer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.left = pg.nn.Linear(4, 3)
        self.right = pg.nn.Linear(4, 3)

    def forward(self, a, b):
        return self.left(a), self.right(b)


def own_losses(outputs, y, weight):
    """The left layer learns y, the right one twice y; the left loss sees both outputs."""
    left, right = outputs
    return {
        "left.*": add(mse(left, y, weight), mul(sum_(right), 0.0)),
        "right.*": mse(right, mul(y, 2.0), weight),
    }


def sums(outputs, y, weight):
    return add(mse(outputs[0], y, weight), mse(outputs[1], mul(y, 2.0), weight))


def batch():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 2, 4)).astype(np.float32)
    return x, (x[:, 0] @ rng.standard_normal((4, 3))).astype(np.float32)


def trainer(loss, device="reference", **groups):
    made = pg.Trainer(Two(), loss, pg.optim.SGD(0.05, **groups), device)
    made.stored = Stored(parts=2)
    return made


def test_losses_of_parts_change_those_parts_only(device: str) -> None:
    """Where the losses depend on one part each, they change it as their sum does."""
    x, y = batch()
    apart, together = trainer(own_losses, device), trainer(sums, device)
    for made in (apart, together):
        for _ in range(3):
            made.step(x, y)
    for name, array in together.parameters().items():
        np.testing.assert_allclose(apart.parameters()[name], array, rtol=1e-5, atol=1e-6)


def test_a_loss_gives_no_gradient_to_parameters_of_another(device: str) -> None:
    def crossed(outputs, y, weight):
        return {"left.*": mse(add(*outputs), y, weight), "right.*": mul(sum_(outputs[1]), 0.0)}

    x, y = batch()
    made = trainer(crossed, device)
    made.step(x, y)
    grads = made.gradients()
    assert grads["left.weight"].any()
    assert not grads["right.weight"].any()


def test_groups_of_an_optimizer_train_parts_at_their_own_rate() -> None:
    x, y = batch()
    made = trainer(own_losses, groups=(pg.optim.Group("left.*", lr_scale=0.0),))
    before = made.parameters()
    made.step(x, y)
    after = made.parameters()
    np.testing.assert_array_equal(before["left.weight"], after["left.weight"])
    assert (before["right.weight"] != after["right.weight"]).any()


@pytest.mark.parametrize(
    ("loss", "error", "said"),
    [
        (
            lambda o, y, w: {"left.*": mse(o[0], y, w)},
            SettingError,
            "no loss trains 'right.weight'",
        ),
        (lambda o, y, w: {"top.*": mse(o[0], y, w)}, UnknownNameError, "top"),
        (lambda o, y, w: {"*": o[0]}, SettingError, "must be one float"),
    ],
)
def test_losses_that_do_not_fit_are_told(loss, error, said) -> None:
    with pytest.raises(error, match=said):
        trainer(loss).step(*batch())


def test_inputs_that_are_not_stacked_are_told() -> None:
    with pytest.raises(ShapeError, match="2 inputs of the model are stacked along axis 1"):
        trainer(sums).step(np.zeros((8, 3, 4), np.float32), batch()[1])


def test_labels_that_do_not_count_change_no_accuracy(device: str) -> None:
    """Two labels per sample, of which one is padding: only the other one is judged."""

    class Fixed(Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = pg.nn.Parameter(np.ones(1, np.float32))

        def forward(self, x):
            scale: Any = self.scale  # a value while the step is described
            return mul(x, scale)

    x = np.zeros((4, 3, 2), np.float32)
    x[:, 1] = 1.0  # class 1 everywhere
    y = np.array([[1, -100], [0, -100], [1, 1], [1, 0]], np.int32)
    made = pg.Trainer(Fixed(), cross_entropy, pg.optim.SGD(0.0), device)
    found = made.evaluate([(x, y)])
    assert found.accuracy == pytest.approx((1 + 0 + 1 + 0.5) / 4)


def changed(augment: Augment, x, step: int = 0):
    """What becomes of images in a training step."""
    with Builder(Tensor) as builder:
        images = builder.input(TensorType(x.shape, dtype_of(x)), "x")
        seed, at = (builder.input(TensorType((), int32), name) for name in ("seed", "step"))
        out = augment.coloured(augment.moved(images, seed, at), seed, at)
        graph = builder.graph([out])
    numbers = {"seed": np.asarray(5, np.int32), "step": np.asarray(step, np.int32)}
    return evaluate(graph, {"x": x, **numbers})[out]


def test_images_are_mirrored_and_shifted_and_nothing_else() -> None:
    """Every image is the one given, at one of the places and ways round that were allowed."""
    rng = np.random.default_rng(1)
    x = rng.integers(1, 256, (16, 2, 5, 6)).astype(np.uint8)
    found = changed(Augment(flip=True, crop=2), x)
    ways = set()
    for image, new in zip(x, found, strict=True):
        padded = {
            flip: np.pad(np.flip(image, 2) if flip else image, ((0, 0), (2, 2), (2, 2)))
            for flip in (False, True)
        }
        matches = [
            (flip, dy, dx)
            for flip, whole in padded.items()
            for dy in range(5)
            for dx in range(5)
            if np.array_equal(whole[:, dy : dy + 5, dx : dx + 6], new)
        ]
        assert len(matches) == 1
        ways.add(matches[0])
    assert len({flip for flip, *_ in ways}) == 2
    assert len(ways) > 8
    assert (changed(Augment(flip=True, crop=2), x, step=1) != found).any()


def test_colour_changes_brightness_and_contrast_of_a_whole_image() -> None:
    x = np.random.default_rng(1).standard_normal((6, 3, 4, 4)).astype(np.float32) + 2.0
    found = changed(Augment(colour=0.3), x)
    for image, new in zip(x, found, strict=True):
        slope, offset = np.polyfit(image.ravel(), new.ravel(), 1)
        np.testing.assert_allclose(slope * image + offset, new, rtol=1e-4, atol=1e-4)
        assert 0.7 <= slope <= 1.3
        assert 0.7 <= new.mean() / image.mean() <= 1.3


def test_a_device_changes_images_as_numpy_does(device: str) -> None:
    data = pg.data.synthetic(64, (3, 8, 8), 3, test=16)
    results = []
    for place in ("reference", device):
        net = pg.nn.Sequential(pg.nn.Flatten(), pg.nn.Linear(192, 3))
        made = pg.Trainer(net, device=place, augment=Augment(True, 2, 0.2))
        results.append(made.fit(data, 2, 16, progress=False)[-1].loss)
    assert results[0] == pytest.approx(results[1], rel=1e-4)


def test_evaluation_changes_no_image() -> None:
    data = pg.data.synthetic(64, (3, 8, 8), 3, test=16)
    net = pg.nn.Sequential(pg.nn.Flatten(), pg.nn.Linear(192, 3))
    plain = pg.Trainer(net, device="reference")
    busy = pg.Trainer(net, device="reference", augment=Augment(True, 2, 0.2))
    assert plain.evaluate(data).loss == busy.evaluate(data).loss


@pytest.mark.parametrize("text", ["flop", "crop:x", "flip;crop"])
def test_words_of_augmentation_that_are_none_are_told(text: str) -> None:
    with pytest.raises(SettingError, match="give words like flip,crop:4"):
        Augment.parse(text)


def test_words_say_what_happens_to_images() -> None:
    assert Augment.parse("flip,crop:3,colour:0.1") == Augment(True, 3, 0.1)
    assert Augment.parse("crop") == Augment(crop=4)
    with pytest.raises(SettingError, match="crop -1"):
        Augment(crop=-1)
    with pytest.raises(SettingError, match=r"colour 1\.5"):
        Augment(colour=1.5)
