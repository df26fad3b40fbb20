"""Random small networks as data, which either library turns into layers of the same names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import Any

from hypothesis import strategies as st

Shape = tuple[int, ...]  # of one sample
Draw = st.DrawFn


@dataclass(frozen=True)
class Layer:
    """A layer by its name and arguments, and how its output goes on."""

    name: str
    args: tuple[Any, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    how: str = "plain"

    def made_by(self, library: Any) -> Any:
        """The layer of ``pocketgrad.nn`` or ``torch.nn``."""
        return getattr(library, self.name)(*self.args, **self.settings)


@dataclass(frozen=True)
class Network:
    """Layers for samples of a shape; tokens below ``vocabulary`` if that is not 0."""

    layers: tuple[Layer, ...]
    sample: Shape
    vocabulary: int
    batch: int
    classes: int
    optimizer: str
    settings: dict[str, Any]
    seed: int


def network_class(library: Any, concat: Callable[[list[Any], int], Any]) -> Any:
    """The class of all networks in a library."""

    class Chain(library.Module):
        def __init__(self, layers: Sequence[Layer]) -> None:
            super().__init__()
            self.hows = [layer.how for layer in layers]
            self.parts = library.ModuleList([layer.made_by(library) for layer in layers])

        def forward(self, x: Any) -> Any:
            for how, part in zip(self.hows, self.parts, strict=True):
                if how == "plain":
                    x = part(x)
                elif how == "residual":
                    x = x + part(x)
                elif how == "concat":
                    x = concat([x, part(x)], 1)
                elif how == "recurrent":
                    x = part(x)[0]
                else:
                    x = x + part(x, x, x, need_weights=False)[0]
            return x

    return Chain


@st.composite
def networks(draw: Draw) -> Network:
    """Two to six layers over images, tokens or vectors, with a head of classes."""
    kind = draw(st.sampled_from(["image", "image", "image", "tokens", "vector"]))
    batch, classes = draw(st.integers(2, 5)), draw(st.integers(2, 7))
    vocabulary = 0
    layers: list[Layer] = []
    if kind == "tokens":
        sample: Shape = (draw(st.integers(2, 5)),)
        vocabulary, width = draw(st.integers(3, 11)), draw(st.sampled_from([4, 6, 10]))
        layers.append(Layer("Embedding", (vocabulary, width)))
        shape: Shape = (*sample, width)
    elif kind == "vector":
        sample = shape = (draw(st.integers(1, 37)),)
    else:
        side = st.integers(5, 13)
        sample = shape = (draw(st.integers(1, 6)), draw(side), draw(side))
    for _ in range(draw(st.integers(1, 4))):
        layer, shape = draw(st.sampled_from(GROWTHS[kind]))(draw, shape, batch)
        layers.append(layer)
    if len(shape) > 1:
        layers.append(Layer("Flatten"))
    layers.append(Layer("Linear", (prod(shape), classes)))
    name, settings = draw(optimizers())
    seed = draw(st.integers(0, 2**16))
    return Network(tuple(layers), sample, vocabulary, batch, classes, name, settings, seed)


@st.composite
def optimizers(draw: Draw) -> tuple[str, dict[str, Any]]:
    """A class of both libraries and its settings.

    A large ``eps``: a bias before a normalisation has no gradient but rounding, which Adam would
    otherwise blow up to a step of full size.
    """
    name = draw(st.sampled_from(["SGD", "Adam", "AdamW", "RMSprop"]))
    decay = draw(st.sampled_from([0.0, 0.03]))
    if name == "SGD":
        momentum = draw(st.sampled_from([0.0, 0.5, 0.9]))
        nesterov = momentum > 0 and draw(st.booleans())
        return name, {
            "lr": 0.02, "momentum": momentum, "nesterov": nesterov, "weight_decay": decay
        }  # fmt: skip
    settings: dict[str, Any] = {"lr": 0.005, "eps": 1e-3, "weight_decay": decay}
    more: dict[str, st.SearchStrategy[Any]]
    if name == "RMSprop":
        more = {"alpha": st.sampled_from([0.9, 0.99]), "momentum": st.sampled_from([0.0, 0.5])}
    else:
        betas = st.sampled_from([(0.9, 0.999), (0.5, 0.9)])
        more = {"betas": betas, "amsgrad": st.booleans()}
    return name, settings | {key: draw(value) for key, value in more.items()}


Grown = tuple[Layer, Shape]


def _activation(draw: Draw, shape: Shape, batch: int) -> Grown:
    names = ("ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "LeakyReLU", "Hardswish", "ELU", "Softplus")
    how = draw(st.sampled_from(["plain", "plain", "residual"]))
    return Layer(draw(st.sampled_from(names)), how=how), shape


def _conv(draw: Draw, shape: Shape, batch: int) -> Grown:
    c, *sizes = shape
    kernel = tuple(draw(st.integers(1, min(3, n))) for n in sizes)
    padding = tuple(draw(st.integers(0, k - 1)) for k in kernel)
    dilation = tuple(
        draw(st.integers(1, 2)) if n + 2 * p > 2 * (k - 1) else 1
        for n, k, p in zip(sizes, kernel, padding, strict=True)
    )
    stride = tuple(draw(st.integers(1, 2)) for _ in sizes)
    groups = draw(st.sampled_from([1, 1, c, gcd(c, 2)]))
    out = groups * draw(st.integers(1, 3)) if groups > 1 else draw(st.integers(1, 9))
    settings = {
        "stride": stride, "padding": padding, "dilation": dilation,
        "groups": groups, "bias": draw(st.booleans()),
    }  # fmt: skip
    left = (
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, p, d, s in zip(sizes, kernel, padding, dilation, stride, strict=True)
    )
    return Layer("Conv2d", (c, out, kernel), settings), (out, *left)


def _same_conv(draw: Draw, shape: Shape, batch: int) -> Grown:
    """A convolution that keeps the image's size, added or put beside its input."""
    c, *sizes = shape
    how = draw(st.sampled_from(["residual", "concat"]))
    out = c if how == "residual" else draw(st.integers(1, 5))
    layer = Layer("Conv2d", (c, out, draw(st.sampled_from([1, 3]))), {"padding": "same"}, how)
    return layer, (c if how == "residual" else c + out, *sizes)


def _pool(draw: Draw, shape: Shape, batch: int) -> Grown:
    c, *sizes = shape
    name = draw(st.sampled_from(["MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d"]))
    if name == "AdaptiveAvgPool2d":
        out = tuple(draw(st.integers(1, n)) for n in sizes)
        return Layer(name, (out,)), (c, *out)
    kernel = tuple(draw(st.integers(1, min(3, n))) for n in sizes)
    stride = tuple(draw(st.integers(1, 2)) for _ in sizes)
    left = ((n - k) // s + 1 for n, k, s in zip(sizes, kernel, stride, strict=True))
    return Layer(name, (kernel,), {"stride": stride}), (c, *left)


def _norm(draw: Draw, shape: Shape, batch: int) -> Grown:
    """A normalisation over enough numbers: over two it is a sign, whose gradient is rounding."""
    c, *sizes = shape
    if batch * prod(sizes) >= 12 and len(sizes) == 2 and draw(st.booleans()):
        return Layer("BatchNorm2d", (c,)), shape
    if prod(shape) >= 6:
        return Layer("LayerNorm", (list(shape),)), shape
    return _activation(draw, shape, batch)


def _linear(draw: Draw, shape: Shape, batch: int) -> Grown:
    *lead, n = shape
    out = draw(st.integers(1, 35))
    return Layer("Linear", (n, out), {"bias": draw(st.booleans())}), (*lead, out)


def _recurrent(draw: Draw, shape: Shape, batch: int) -> Grown:
    steps, n = shape
    out, twice = draw(st.sampled_from([2, 5, 6])), draw(st.booleans())
    name = draw(st.sampled_from(["LSTM", "GRU"]))
    settings = {"batch_first": True, "bidirectional": twice}
    return Layer(name, (n, out), settings, "recurrent"), (steps, out * (1 + twice))


def _attention(draw: Draw, shape: Shape, batch: int) -> Grown:
    _, n = shape
    heads = draw(st.sampled_from([h for h in (1, 2, 3) if n % h == 0]))
    settings = {"batch_first": True, "bias": draw(st.booleans())}
    return Layer("MultiheadAttention", (n, heads), settings, "attention"), shape


GROWTHS: dict[str, tuple[Callable[[Draw, Shape, int], Grown], ...]] = {
    "image": (_activation, _conv, _conv, _conv, _same_conv, _pool, _norm),
    "tokens": (_activation, _linear, _recurrent, _attention, _norm),
    "vector": (_activation, _linear, _linear, _norm),
}
