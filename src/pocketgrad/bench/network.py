"""A network as plain data: layers between named values, which every adapter builds its own way.

Derived from our traced model by `describe`; read by processes that have nothing but NumPy.

kind        settings (sizes are pairs, images are N C H W)            weights below its name
conv        channels out window stride padding dilation groups bias   weight bias
linear      channels out bias                                         weight bias
batch_norm  channels eps momentum                                     weight bias running_mean running_var
max_pool    window stride padding dilation ceil
avg_pool    window stride padding ceil count_padding
mean        over height and width, which stay as 1 × 1
embedding   rows size                                                 weight
lstm        channels out layers (batch first)                         weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0 …
concat      axis            transpose   axes
relu relu6 flatten add      none
"""  # noqa: E501  # a table

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = (
    "conv", "linear", "batch_norm", "max_pool", "avg_pool", "mean", "embedding", "lstm", "concat",
    "transpose", "relu", "relu6", "flatten", "add",
)  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """One layer: reads values by name, makes ``output`` of a shape (with the batch)."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    output: str
    shape: tuple[int, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


def ends(layer: Layer, size: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Padding before and after height and width of a pooled image, as its output's shape needs."""
    s = layer.settings
    found = []
    for axis in (0, 1):
        needed = (layer.shape[2 + axis] - 1) * s["stride"][axis] + s["window"][axis]
        before = s["padding"][axis]
        found.append((before, max(0, needed - size[axis] - before)))
    return found[0], found[1]


@dataclass(frozen=True)
class Network:
    """Layers in order, from the value ``input`` of a shape to the value ``output``."""

    input: str
    shape: tuple[int, ...]
    layers: tuple[Layer, ...]
    output: str

    @property
    def uses(self) -> dict[str, int]:
        """How often each value is read; the output once more."""
        found = {self.output: 1}
        for layer in self.layers:
            for name in layer.inputs:
                found[name] = found.get(name, 0) + 1
        return found

    def shape_of(self, value: str) -> tuple[int, ...]:
        """The shape of a value by name."""
        made = {layer.output: layer.shape for layer in self.layers}
        return made.get(value, self.shape)

    def run(self, x: Any, apply: Callable[[Layer, list[Any]], Any]) -> Any:
        """The output for ``x``, where ``apply`` is a layer on values of any framework."""
        values = {self.input: x}
        left = self.uses
        for layer in self.layers:
            given = [values[name] for name in layer.inputs]
            for name in layer.inputs:
                left[name] -= 1
                if not left[name]:
                    del values[name]  # frees what eager frameworks would keep
            values[layer.output] = apply(layer, given)
        return values[self.output]

    def to_json(self) -> dict[str, Any]:
        """As JSON takes it."""
        layers = [
            {
                "kind": x.kind,
                "name": x.name,
                "inputs": x.inputs,
                "output": x.output,
                "shape": x.shape,
                "settings": dict(x.settings),
            }
            for x in self.layers
        ]
        return {"input": self.input, "shape": self.shape, "layers": layers, "output": self.output}


def network_from_json(fields: Mapping[str, Any]) -> Network:
    """What `to_json` gave."""
    layers = tuple(
        Layer(
            x["kind"], x["name"], tuple(x["inputs"]), x["output"], tuple(x["shape"]),
            {key: _frozen(value) for key, value in x["settings"].items()},
        )
        for x in fields["layers"]
    )  # fmt: skip
    return Network(fields["input"], tuple(fields["shape"]), layers, fields["output"])


def _frozen(value: Any) -> Any:
    """JSON has lists where settings had tuples."""
    return tuple(value) if isinstance(value, list) else value
