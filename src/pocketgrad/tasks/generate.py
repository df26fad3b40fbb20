"""Pictures like those of a data set, by two networks that train each other (DCGAN)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad import data, zoo
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import Value
from pocketgrad.nn.module import Module
from pocketgrad.nn.optim import Adam, Group, Optimizer
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.loss import bce_with_logits
from pocketgrad.ops.source import constant
from pocketgrad.tasks.api import Source, Task, require
from pocketgrad.train.trainer import Trainer
from pocketgrad.zoo.dcgan import DCGAN, LATENT
from pocketgrad.zoo.registry import ModelCard

SIDE = 8  # pictures along a side of the sheet


class Generate(Task):
    """Generator and discriminator, of which the card's model is one."""

    usual = "embedded"
    schedule = "constant"

    def fitting(self, source: data.Dataset) -> Source:
        fits = source.x.dtype == np.uint8 and len(source.sample_shape) == 3
        require(source, fits, "images")
        return replace(squared(source), held_out=squared(source.test))

    def model(self, card: ModelCard, source: Source, **options: Any) -> Module:
        channels, size = source.sample_shape[:2]
        maker = zoo.card("dcgan-generator").make(size=size, channels=channels, **options)
        judge = zoo.card("dcgan-discriminator").make(image=size, channels=channels, **options)
        return DCGAN(maker, judge, LATENT)  # type: ignore[arg-type]  # what the two cards build

    def loss_for(self, source: Source) -> Any:
        return losses

    def optimizer(self, name: str, rate: float | None = None) -> Optimizer:
        """Two, of equal settings: each network's state is its own. Adam as Radford et al."""
        groups = (Group("generator.*"), Group("discriminator.*"))
        if name == "adam":
            return Adam(2e-4 if rate is None else rate, (0.5, 0.999), groups=groups)
        return replace(super().optimizer(name, rate), groups=groups)

    def measure(self, trainer: Trainer, source: Source) -> dict[str, Any]:
        """The sum of both losses; 2.08 where the discriminator only guesses. No number tells more
        of pictures: look at them."""
        return {"test_loss": trainer.evaluate(source.test).loss, "test_accuracy": None}

    def samples(self, trainer: Trainer, source: Source, path: Path | None) -> list[str]:
        if path is None:
            return []
        if path.suffix != ".png":
            raise SettingError(f"--picture {path}: pictures are written as .png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(sheet(made(trainer, SIDE**2))))
        return [f"{SIDE**2} pictures in {path}"]

    def predict(self, trainer: Trainer, source: Source, path: Path) -> list[str]:
        raise SettingError("a generator predicts nothing; write its pictures with --picture FILE")


def losses(outputs: tuple[Value, Value, Value], y: Value, weight: Value) -> dict[str, Value]:
    """Each network's own: the generator's is that its pictures pass for real ones."""
    _, real, fake = outputs
    one, zero = (constant(v, real.dtype, real.shape) for v in (1.0, 0.0))
    return {
        "generator.*": bce_with_logits(fake, one),
        "discriminator.*": add(bce_with_logits(real, one, weight), bce_with_logits(fake, zero)),
    }


def made(trainer: Trainer, count: int, seed: int = 0) -> Array:
    """Pictures uint8 [count, C, H, W] of the generator alone."""
    trainer.session.store_model()
    net = trainer.net
    assert isinstance(net, DCGAN)
    rng = np.random.Generator(np.random.Philox(key=seed))
    latent = rng.standard_normal((count, net.latent), np.float32)
    found = Trainer(net.generator, "mse", device=trainer.place.backend).predict(latent)
    return np.clip(found * 127.5 + 127.5, 0, 255).astype(np.uint8)


def sheet(pictures: Array) -> Array:
    """Pictures side by side, [C, H, W]."""
    count, c, h, w = pictures.shape
    side = int(count**0.5)
    grid = pictures[: side * side].reshape(side, side, c, h, w)
    return grid.transpose(2, 0, 3, 1, 4).reshape(c, side * h, side * w)


def png(pixels: Array) -> bytes:
    """An image uint8 [C, H, W], grey or RGB, as a PNG file."""
    c, h, w = pixels.shape
    lines = np.zeros((h, 1 + w * c), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = pixels.transpose(1, 2, 0).reshape(h, w * c)
    head = struct.pack(">IIBBBBB", w, h, 8, 0 if c == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def squared(source: data.Dataset) -> data.Dataset:
    """Images of a power of two, filled with black around, on a scale of ±1."""
    _, height, width = source.sample_shape
    side = max(8, 1 << (max(height, width) - 1).bit_length())
    x = source.x
    if (height, width) != (side, side):
        rows, columns = side - height, side - width
        around = ((0, 0), (0, 0), (rows // 2, rows - rows // 2))
        x = np.pad(source.x[:], (*around, (columns // 2, columns - columns // 2)))
    return replace(source, x=x, mean=(127.5,), std=(127.5,), held_out=None)
