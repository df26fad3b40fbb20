"""Our traced model as a `Network`: which layers of `nn` it calls, and what joins their results.

Nodes that a layer emits itself become one layer; what a model emits between its layers (additions,
concatenations) becomes one layer per node. Dropout must be off, so that peers can agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from pocketgrad.bench.network import Layer, Network
from pocketgrad.bench.task import NotWrittenError
from pocketgrad.ir.core import Node, TensorType, Value
from pocketgrad.nn.activation import ReLU, ReLU6
from pocketgrad.nn.conv import Conv2d, both
from pocketgrad.nn.layers import Embedding, Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm2d
from pocketgrad.nn.pool import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from pocketgrad.nn.recurrent import LSTM
from pocketgrad.ops.arithmetic import Add
from pocketgrad.ops.move import Concat, Transpose
from pocketgrad.ops.transcendental import Relu
from pocketgrad.zoo.summary import traced

Described = tuple[str, dict[str, Any]]  # kind and settings


def describe(model: Module, sample: TensorType, batch: int) -> Network:
    """The network of a model on batches of such samples, as it is trained."""
    found = traced(model, [sample], batch, training=True)
    parts = {name: part for name, part in model.named_modules() if not list(part.children())}
    (x,), (output,) = found.inputs, found.outputs
    return _Describer(parts, x, output).network(found.graph.nodes)


class _Describer:
    """Goes through the nodes once; ``made`` are the values that depend on the input."""

    def __init__(self, parts: Mapping[str, Module], x: Value, output: Value) -> None:
        self.parts, self.output = parts, output
        self.made = {x: "x"}
        self.names: set[str] = set()
        self.layers: list[Layer] = []
        self.shape = x.shape

    def network(self, nodes: Sequence[Node]) -> Network:
        """The whole."""
        live = self._live(nodes)
        ordered = [n for n in nodes if any(v in live for v in n.inputs)]
        keys = [n.scope if n.scope in self.parts else str(i) for i, n in enumerate(ordered)]
        pairs = zip(keys, ordered, strict=True)
        groups = [[n for _, n in run] for _, run in groupby(pairs, key=itemgetter(0))]
        readers = [(v, i) for i, group in enumerate(groups) for n in group for v in n.inputs]
        last = dict(readers) | {self.output: len(groups)}  # the last group that reads each value
        for i, group in enumerate(groups):
            outputs = [v for n in group for v in n.outputs if last.get(v, i) > i]
            if outputs:  # else new running statistics: the layer's own business
                self._add(group, outputs, live)
        return Network("x", self.shape, tuple(self.layers), self.made[self.output])

    def _live(self, nodes: Sequence[Node]) -> set[Value]:
        live = set(self.made)
        for node in nodes:
            if any(v in live for v in node.inputs):
                live.update(node.outputs)
        return live

    def _add(self, group: list[Node], outputs: list[Value], live: set[Value]) -> None:
        inside = {v for node in group for v in node.outputs}
        read = [v for node in group for v in node.inputs if v in live and v not in inside]
        inputs = list(dict.fromkeys(read)) if len(group) > 1 else read
        scope = group[0].scope
        if len(outputs) > 1 or any(v not in self.made for v in inputs):
            raise NotWrittenError(f"'{scope}' gives several values; peers know layers of one")
        kind, settings = self._described(group)
        name = self._named(scope, kind)
        (out,) = outputs
        self.made[out] = name
        given = tuple(self.made[v] for v in inputs)
        self.layers.append(Layer(kind, name, given, name, out.shape, settings))

    def _described(self, group: list[Node]) -> Described:
        part = self.parts.get(group[0].scope)
        if part is not None and type(part) in LAYERS:
            return LAYERS[type(part)](part)
        if len(group) == 1 and type(group[0].op) in NODES:
            return NODES[type(group[0].op)](group[0].op)
        what = type(part).__name__ if part is not None else type(group[0].op).__name__
        raise NotWrittenError(f"{what} in '{group[0].scope}' has no form that peers share")

    def _named(self, scope: str, kind: str) -> str:
        """The layer's own name, by which its weights are found; others by their kind."""
        stem = scope if scope in self.parts else ".".join(p for p in (scope, kind) if p)
        name, count = stem, 1
        while name in self.names:
            count += 1
            name = f"{stem}_{count}"
        self.names.add(name)
        return name


def _conv(part: Any) -> Described:
    (top, bottom), (left, right) = part.sides
    if (top, left) != (bottom, right):
        raise NotWrittenError("padding that differs between sides has no form that peers share")
    return "conv", {
        "channels": part.in_channels, "out": part.out_channels, "window": part.kernel_size,
        "stride": part.stride, "padding": (top, left), "dilation": part.dilation,
        "groups": part.groups, "bias": part.bias is not None,
    }  # fmt: skip


def _linear(part: Any) -> Described:
    bias = part.bias is not None
    return "linear", {"channels": part.in_features, "out": part.out_features, "bias": bias}


def _norm(part: Any) -> Described:
    settings = {"channels": part.num_features, "eps": part.eps, "momentum": part.momentum}
    return "batch_norm", settings


def _max_pool(part: Any) -> Described:
    sizes = {n: both(getattr(part, n)) for n in ("stride", "padding", "dilation")}
    return "max_pool", {"window": both(part.kernel_size), **sizes, "ceil": part.ceil_mode}


def _avg_pool(part: Any) -> Described:
    return "avg_pool", {
        "window": both(part.kernel_size), "stride": both(part.stride),
        "padding": both(part.padding), "ceil": part.ceil_mode,
        "count_padding": part.count_include_pad,
    }  # fmt: skip


def _mean(part: Any) -> Described:
    if part.output_size not in (1, (1, 1)):
        raise NotWrittenError("adaptive pooling to more than 1 × 1 has no form that peers share")
    return "mean", {}


def _lstm(part: Any) -> Described:
    if len(part.ways) > 1 or not part.batch_first or not part.bias:
        raise NotWrittenError("peers share LSTMs of one direction, batch first, with bias")
    sizes = {"channels": part.input_size, "out": part.hidden_size, "layers": part.num_layers}
    return "lstm", sizes


LAYERS: Mapping[type[Module], Callable[[Any], Described]] = {
    Conv2d: _conv,
    Linear: _linear,
    BatchNorm2d: _norm,
    MaxPool2d: _max_pool,
    AvgPool2d: _avg_pool,
    AdaptiveAvgPool2d: _mean,
    Embedding: lambda part: (
        "embedding",
        {"rows": part.num_embeddings, "size": part.embedding_dim},
    ),
    LSTM: _lstm,
    ReLU: lambda part: ("relu", {}),
    ReLU6: lambda part: ("relu6", {}),
    Flatten: lambda part: ("flatten", {}),
}
NODES: Mapping[type, Callable[[Any], Described]] = {
    Add: lambda op: ("add", {}),
    Concat: lambda op: ("concat", {"axis": op.axis}),
    Transpose: lambda op: ("transpose", {"axes": op.axes}),
    Relu: lambda op: ("relu", {}),
}
