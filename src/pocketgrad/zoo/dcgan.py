"""DCGAN (Radford et al. 2015, https://arxiv.org/abs/1511.06434): two networks that train together.

Layers and names are those of PyTorch's example. Default are 32×32 images, as Liu et al. train it on
CIFAR-10; 64×64 is the paper's. The discriminator gives logits, the generator values within ±1.
"""

from __future__ import annotations

from itertools import pairwise
from math import pi

from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn import init
from pocketgrad.nn.activation import LeakyReLU, ReLU, Tanh
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d, ConvTranspose2d
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm2d
from pocketgrad.nn.tracing import require
from pocketgrad.ops.arithmetic import mul, sub
from pocketgrad.ops.move import reshape
from pocketgrad.ops.source import uniform
from pocketgrad.ops.transcendental import cos, log, sqrt
from pocketgrad.zoo.blocks import scaled
from pocketgrad.zoo.registry import register

PAPER = "Radford et al. 2015, Unsupervised representation learning with DCGANs"
LATENT = 100
BASE = 64  # channels beside the image
LAST = 4  # height and width beside the latent numbers


class Generator(Module):
    """Latent numbers to 4×4, then doubled by transposed convolutions up to the image."""

    def __init__(self, latent: int, channels: int, image: int, width: float) -> None:
        super().__init__()
        sizes = _sizes(image, width)[::-1]
        layers: list[Module] = [ConvTranspose2d(latent, sizes[0], LAST, bias=False)]
        layers += [BatchNorm2d(sizes[0]), ReLU()]
        for a, b in pairwise(sizes):
            layers += [ConvTranspose2d(a, b, 4, 2, 1, bias=False), BatchNorm2d(b), ReLU()]
        layers += [ConvTranspose2d(sizes[-1], channels, 4, 2, 1, bias=False), Tanh()]
        self.main = Sequential(*layers)
        _initialise(self)

    def forward(self, x: Value) -> Value:
        picture: Value = self.main(reshape(x, (*x.shape[:2], 1, 1)))
        return picture


class Discriminator(Module):
    """An image, halved by convolutions down to 4×4, to one logit."""

    def __init__(self, channels: int, image: int, width: float) -> None:
        super().__init__()
        sizes = _sizes(image, width)
        layers: list[Module] = [Conv2d(channels, sizes[0], 4, 2, 1, bias=False), LeakyReLU(0.2)]
        for a, b in pairwise(sizes):
            layers += [Conv2d(a, b, 4, 2, 1, bias=False), BatchNorm2d(b), LeakyReLU(0.2)]
        layers.append(Conv2d(sizes[-1], 1, LAST, bias=False))
        self.main = Sequential(*layers)
        _initialise(self)

    def forward(self, x: Value) -> Value:
        logit: Value = self.main(x)
        return reshape(logit, (x.shape[0], 1))


class DCGAN(Module):
    """Both networks on a batch of real images: pictures made, logits of the real, of the made ones.

    Latent numbers are drawn on the device. Both networks are judged and updated from the same
    forward pass; PyTorch's example updates the discriminator first.
    """

    def __init__(self, generator: Generator, discriminator: Discriminator, latent: int) -> None:
        super().__init__()
        self.generator, self.discriminator, self.latent = generator, discriminator, latent

    def forward(self, images: Value) -> tuple[Value, Value, Value]:
        made: Value = self.generator(self._normal((images.shape[0], self.latent)))
        return made, self.discriminator(images), self.discriminator(made)

    def _normal(self, shape: tuple[int, ...]) -> Value:
        """Normal numbers by Box and Muller's formula."""
        trace = require("DCGAN")
        seed, step = trace.random
        radius, angle = (uniform(shape, seed, step, trace.next_stream()) for _ in range(2))
        length = sqrt(mul(log(sub(1.0, radius)), -2.0))  # 1 - radius is above 0
        return mul(length, cos(mul(angle, 2 * pi)))


def _sizes(image: int, width: float) -> list[int]:
    halvings = (image // LAST).bit_length() - 1
    if image < 2 * LAST or LAST << halvings != image:
        raise SettingError(f"DCGAN makes images of 8, 16, 32, 64 or 128, not {image}")
    return [scaled(BASE << i, width) for i in range(halvings)]


def _initialise(model: Module) -> None:
    for part in model.modules():
        if isinstance(part, Conv2d | ConvTranspose2d):
            init.normal_(part.weight, 0.0, 0.02)
        elif isinstance(part, BatchNorm2d):
            init.normal_(part.weight, 1.0, 0.02)


@register(
    "dcgan-generator", paper=PAPER, input=TensorType((LATENT,)), classes=0, params=1_068_928,
    domain="generation",
)  # fmt: skip
def generator(
    size: int = 32, width: float = 1.0, latent: int = LATENT, channels: int = 3
) -> Generator:
    """Images of ``size`` squared."""
    return Generator(latent, channels, size, width)


@register(
    "dcgan-discriminator", paper=PAPER, input=TensorType((3, 32, 32)), classes=0, params=663_296,
    domain="generation",
)  # fmt: skip
def discriminator(image: int = 32, width: float = 1.0, channels: int = 3) -> Discriminator:
    """Whether an image is a real one."""
    return Discriminator(channels, image, width)
