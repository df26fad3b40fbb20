"""Where images lie: row-major, or channels-last with neighbouring channels side by side.

Ops see [N, C, H, W] either way. Values that convolutions, pooling and elementwise work connect lie
alike, so that nothing is reordered between them; each such family of values is laid out as its
convolutions are fastest. See docs/adr/0011.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil, prod

from pocketgrad.ir.core import Graph, Node, Op, Value
from pocketgrad.ops.average import (
    AdaptiveAvgPool2d,
    AdaptiveAvgPool2dGrad,
    AvgPool2d,
    AvgPool2dGrad,
)
from pocketgrad.ops.conv import Conv, Conv2d, Conv2dGradInput, Conv2dGradWeight
from pocketgrad.ops.linalg import MatMul
from pocketgrad.ops.move import Concat, Flip, Pad, Slice
from pocketgrad.ops.pointwise import Pointwise
from pocketgrad.ops.pool import (
    AdaptiveMaxPool2d,
    AdaptiveMaxPool2dGrad,
    MaxPool2d,
    MaxPool2dGrad,
)
from pocketgrad.plan.domain import loopable
from pocketgrad.plan.views import VIEW_OPS, View

# Operands, by position, that are images; the others may have any strides.
IMAGES: Mapping[type[Op], tuple[int, ...]] = {
    Conv2d: (0,),
    Conv2dGradInput: (0,),
    Conv2dGradWeight: (0, 1),
    MaxPool2d: (0,),
    MaxPool2dGrad: (0, 1),
    AvgPool2d: (0,),
    AvgPool2dGrad: (0,),
    AdaptiveMaxPool2d: (0,),
    AdaptiveMaxPool2dGrad: (0, 1),
    AdaptiveAvgPool2d: (0,),
    AdaptiveAvgPool2dGrad: (0,),
}
POSITIONED = (Pointwise, Concat, Slice, Pad, Flip)  # an image in is an image out, lying alike
# Below this many channels an image is read number by number, so that it may lie anyhow.
FEW_CHANNELS = 8
# Row-major convolutions load from every place and test borders in vectors; docs/performance.md.
ROW_MAJOR_RATE = 0.5

Layout = Callable[[Graph, int], frozenset[Value]]


def channels_last(graph: Graph, width: int) -> frozenset[Value]:
    """The values that are to lie channels-last, for vectors of ``width`` floats."""
    kin = _Kin()
    gain: dict[Value, float] = {}
    for node in graph.nodes:
        images = [v for v in _images(node) if len(v.shape) == 4]
        for other in images[1:]:
            kin.join(images[0], other)
        if isinstance(node.op, Conv) and images:
            gain[images[0]] = gain.get(images[0], 0.0) + _gain(node, width)
    total: dict[Value, float] = {}
    for value, saved in gain.items():
        root = kin.find(value)
        total[root] = total.get(root, 0.0) + saved
    return frozenset(
        v
        for node in graph.nodes
        for v in node.outputs
        if len(v.shape) == 4 and _follows(node) and total.get(kin.find(v), 0.0) > 0
    )


def takes_any(node: Node, position: int) -> bool:
    """Whether kernels read this operand wherever its elements lie."""
    if isinstance(node.op, MatMul):
        return True
    return position not in IMAGES.get(type(node.op), (position,))


def runs_last(node: Node, last: frozenset[Value]) -> bool:
    """Whether the kernel of an image op is to be one that walks channels."""
    if isinstance(node.op, Conv2dGradWeight):
        return node.inputs[_CT_OF_WEIGHT] in last
    return type(node.op) in IMAGES and node.outputs[0] in last


def readable_last(node: Node, position: int, view: View) -> bool:
    """Whether such a kernel can read an image operand as it lies."""
    few = isinstance(node.op, (Conv2d, Conv2dGradWeight)) and view.shape[1] < FEW_CHANNELS
    return view.pitch is not None or (few and position == 0 and view.dense)


_CT_OF_WEIGHT = 1  # the operand of Conv2dGradWeight that is the cotangent of the output


def _follows(node: Node) -> bool:
    """Whether the results of a node can lie either way."""
    anyhow = (*VIEW_OPS, Concat, Pad)
    return type(node.op) in IMAGES or isinstance(node.op, anyhow) or loopable(node)


def _images(node: Node) -> Iterable[Value]:
    """The values of a node that are to lie alike."""
    op = node.op
    if isinstance(op, Conv2dGradWeight):
        x, dy = node.inputs
        return (dy,) if x.shape[1] < FEW_CHANNELS else (dy, x)
    if isinstance(op, Conv2d) and node.inputs[0].shape[1] < FEW_CHANNELS:
        return node.outputs
    if type(op) in IMAGES:
        return (*node.outputs, *(node.inputs[i] for i in IMAGES[type(op)]))
    if isinstance(op, POSITIONED):
        out = node.outputs[0]
        if isinstance(op, Pointwise):
            return (out, *(v for v in node.inputs if v.shape == out.shape))
        return (out, *node.inputs)
    return ()


def _gain(node: Node, width: int) -> float:
    """Vector operations saved by lying channels-last."""
    op = node.op
    assert isinstance(op, Conv)
    if isinstance(op, Conv2dGradWeight):
        x, dy = (v.shape for v in node.inputs)
        lanes = dy[1]
    elif isinstance(op, Conv2dGradInput):
        dy, x = node.inputs[0].shape, node.outputs[0].shape
        lanes = x[1]
    else:
        x, dy = node.inputs[0].shape, node.outputs[0].shape
        lanes = dy[1]
    weights = node.outputs[0].shape if isinstance(op, Conv2dGradWeight) else node.inputs[1].shape
    work = dy[0] * prod(dy[2:]) * prod(weights)
    row_major = _filled(dy[2] * dy[3], width) * ROW_MAJOR_RATE
    return work / row_major - work / _filled(lanes, width)


def _filled(n: int, width: int) -> float:
    """The useful share of vectors that hold n numbers."""
    return n / (width * ceil(n / width)) if n else 1.0


class _Kin:
    """Union-find over values."""

    def __init__(self) -> None:
        self.parent: dict[Value, Value] = {}

    def find(self, value: Value) -> Value:
        while (above := self.parent.setdefault(value, value)) is not value:
            self.parent[value] = self.parent[above]
            value = above
        return value

    def join(self, a: Value, b: Value) -> None:
        self.parent[self.find(a)] = self.find(b)
