"""What a model costs for one sample, read from its traced forward graph; nothing is computed.

Activation bytes are an estimate from the graph alone: what matrix products, convolutions, poolings
and lookups read and write, with everything elementwise fused into them. What a device really keeps
is said by its plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pocketgrad.base.dtypes import int32
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, Node, TensorType, Value
from pocketgrad.nn.module import Module
from pocketgrad.nn.tracing import tracing
from pocketgrad.ops.conv import Conv, Conv2d
from pocketgrad.ops.linalg import MatMul
from pocketgrad.ops.move import Concat, Movement
from pocketgrad.ops.pointwise import Pointwise
from pocketgrad.ops.reduce import Reduction
from pocketgrad.ops.tensor import Tensor


@dataclass(frozen=True)
class Layer:
    """One line of a model's description: a layer where it computes something itself."""

    name: str
    kind: str
    output: TensorType
    params: int
    flops: int


@dataclass(frozen=True, eq=False)
class Traced:
    """A model's forward graph on one batch; ``builder`` can go on from there, to differentiate."""

    module: Module
    builder: Builder
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    values: dict[str, Value]  # of parameters and buffers
    updates: dict[str, Value]  # new values of buffers

    @cached_property
    def graph(self) -> Graph:
        """The graph so far."""
        return self.builder.graph([*self.outputs, *self.updates.values()])

    @property
    def flops(self) -> int:
        """All arithmetic; a multiply-add counts two."""
        return sum(node.cost.flops for node in self.graph.nodes)

    @property
    def multiply_adds(self) -> int:
        """Those of matrix products and convolutions, which is what papers print as FLOPs."""
        products = (n for n in self.graph.nodes if isinstance(n.op, Conv | MatMul))
        return sum(node.cost.flops for node in products) // 2

    @property
    def convolutions(self) -> int:
        """Number of convolutions."""
        return sum(isinstance(node.op, Conv2d) for node in self.graph.nodes)

    @property
    def activation_nbytes(self) -> int:
        """Bytes of what the layers hand on, without inputs and parameters."""
        dependent = _dependent(self.inputs, self.graph.nodes)
        kept: set[Value] = set()
        for node in self.graph.nodes:
            if not isinstance(node.op, Pointwise | Movement | Reduction | Concat):
                kept.update(node.outputs)
                for value in node.inputs:
                    kept.update(self._stored(value))
        return sum(v.type.nbytes for v in kept & dependent)

    def _stored(self, value: Value) -> Iterator[Value]:
        """Where the elements of a value lie: views and concatenations are looked through."""
        node = self.graph.producers.get(value)
        if node is None or not isinstance(node.op, Movement | Concat):
            yield value
            return
        for source in node.inputs:
            yield from self._stored(source)

    def layers(self) -> list[Layer]:
        """What each layer computes itself, in the order of the first use."""
        nodes: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            nodes.setdefault(node.scope, []).append(node)
        parts = dict(self.module.named_modules())
        return [
            Layer(
                scope,
                type(parts[scope]).__name__ if scope in parts else "",
                mine[-1].outputs[0].type,
                _own_parameters(parts[scope]) if scope in parts else 0,
                sum(node.cost.flops for node in mine),
            )
            for scope, mine in nodes.items()
        ]


def traced(
    module: Module, inputs: Sequence[TensorType], batch: int = 1, training: bool = False
) -> Traced:
    """Describe a model's forward pass on samples of these types."""
    with Builder(Tensor) as builder:
        values = {n: builder.input(t.type, n) for n, t in module.tensors()}
        seed, step = (builder.input(TensorType((), int32), name) for name in ("seed", "step"))
        samples = tuple(
            builder.input(TensorType((batch, *t.shape), t.dtype), f"input{i}")
            for i, t in enumerate(inputs)
        )
        with tracing(values, training, seed, step) as trace:
            outputs = tuple(_flat(module(*samples)))
    return Traced(module, builder, samples, outputs, values, dict(trace.updates))


def _flat(result: Any) -> Iterator[Value]:  # whatever structure of values forward() gives
    if isinstance(result, Value):
        yield result
        return
    for part in result:
        yield from _flat(part)


def _own_parameters(module: Module) -> int:
    return sum(p.size for name, p in module.named_parameters() if "." not in name)


def _dependent(inputs: Iterable[Value], nodes: Iterable[Node]) -> set[Value]:
    """All that follows from the inputs, without themselves."""
    given, found = set(inputs), set[Value]()
    for node in nodes:
        if any(v in given or v in found for v in node.inputs):
            found.update(node.outputs)
    return found
