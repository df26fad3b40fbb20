"""Reading by index and its gradients: rows of a table, elements along an axis.

Gradients own what they write, so they need no atomics and always sum in the order of the indices.
"""

from __future__ import annotations

from abc import abstractmethod
from math import prod

from pocketgrad.base.dtypes import float16, float32
from pocketgrad.ir.core import Node, Op, TensorType, Value
from pocketgrad.kernels.lines import PARAMS, RPT, Lines, only_node
from pocketgrad.kernels.spec import (
    Config,
    DeviceInfo,
    Kernel,
    KernelSource,
    Launch,
    Rendered,
    defines,
    template,
)
from pocketgrad.ops.embed import Gather, GatherGrad, Take, TakeGrad
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole

# What elements are moved as, by their size in bytes.
UNSIGNED = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


class Indexed(Kernel):
    """Base: one op, work in lines, all operands dense."""

    params = PARAMS
    op: type[Op]
    vectors = True

    def matches(self, step: Step) -> bool:
        node = only_node(step)
        if node is None or not isinstance(node.op, self.op):
            return False
        return all(v.dense for v in (*step.reads.values(), *step.writes.values()))

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        lanes = self.lines(step).length if self.vectors else 1
        return config["VW"] <= max(1, lanes) and config["WGS"] <= device.max_work_group

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        lines = self.lines(step)
        return lines.defaults(lines.length if self.vectors else 1, device)

    @abstractmethod
    def lines(self, step: Step) -> Lines:
        """What is computed, as lines."""


class TakeKernel(Indexed):
    """Rows of a table, such as an embedding."""

    name = "take"
    op = Take

    def lines(self, step: Step) -> Lines:
        table, index, _ = operands(step)
        return Lines(prod(index.shape), prod(table.shape[1:]))

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        table, index, y = operands(step)
        lines = self.lines(step)
        macros = lines.macros(config) | {
            "T": UNSIGNED[table.base.dtype.nbytes],
            "IT": index.base.dtype.cl,
            "V": table.shape[0],
        }
        source = KernelSource(template("take"), defines(**macros))
        return Rendered(lines.launches(source, (table, index, y), config))


class GatherKernel(Indexed):
    """Elements along an axis."""

    name = "gather"
    op = Gather
    vectors = False

    def lines(self, step: Step) -> Lines:
        node = only_node(step)
        _, index, _ = operands(step)
        before, length, after = split(node, index)
        return Lines(before * length, after)

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        node = only_node(step)
        x, index, y = operands(step)
        lines = self.lines(step)
        macros = lines.macros(config) | {
            "T": UNSIGNED[x.base.dtype.nbytes],
            "IT": index.base.dtype.cl,
            "A": split(node, x)[1],
            "K": split(node, index)[1],
        }
        source = KernelSource(template("gather"), defines(**macros))
        return Rendered(lines.launches(source, (x, index, y), config))


class Summed(Indexed):
    """Base of the gradients, which sum in float and narrow the sum where it is stored in half."""

    @abstractmethod
    def macros(self, step: Step) -> dict[str, object]:
        """What the template needs beside the lines."""

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        index, ct, total = operands(step)
        lines = self.lines(step)
        macros = lines.macros(config) | self.macros(step)
        macros |= {"CT": ct.base.dtype.cl, "IT": index.base.dtype.cl}
        source = KernelSource(template(self.name), defines(**macros))
        if total.base.dtype is not float16:
            return Rendered(lines.launches(source, (index, ct, total), config))
        wide = Value(TensorType(total.shape, float32), f"{total.base.name}_wide")
        launches = lines.launches(source, (index, ct, whole(wide)), config)
        return Rendered((*launches, *narrow(whole(wide), total, device)), (wide,))


class TakeGradKernel(Summed):
    """Sums rows into a table."""

    name = "take_grad"
    op = TakeGrad

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        config = super().defaults(step, device)
        # Every item reads all indices: on a GPU, too, it shall have many rows of a column.
        return {**config, "RPT": max(RPT.values)} if device.kind == "gpu" else config

    def lines(self, step: Step) -> Lines:
        _, _, total = operands(step)
        return Lines(total.shape[0], prod(total.shape[1:]))

    def macros(self, step: Step) -> dict[str, object]:
        index, _, _ = operands(step)
        return {"N": prod(index.shape)}


class GatherGradKernel(Summed):
    """Sums elements along an axis."""

    name = "gather_grad"
    op = GatherGrad
    vectors = False

    def lines(self, step: Step) -> Lines:
        before, _, after = split(only_node(step), operands(step)[2])
        return Lines(before, after)

    def macros(self, step: Step) -> dict[str, object]:
        node, (index, _, total) = only_node(step), operands(step)
        return {"A": split(node, total)[1], "K": split(node, index)[1]}


def operands(step: Step) -> tuple[View, View, View]:
    """Both inputs and the output."""
    node = only_node(step)
    assert node is not None
    a, b = (step.reads[v] for v in node.inputs)
    return a, b, step.writes[node.outputs[0]]


def split(node: Node | None, view: View) -> tuple[int, int, int]:
    """Elements before, along and behind the axis."""
    assert node is not None
    assert isinstance(node.op, Gather | GatherGrad)
    axis = node.op.axis
    return prod(view.shape[:axis]), view.shape[axis], prod(view.shape[axis + 1 :])


def narrow(x: View, y: View, device: DeviceInfo) -> tuple[Launch, ...]:
    """float to half."""
    size = prod(x.shape)
    length = next(n for n in (1024, 256, 64, 16, 1) if size % n == 0)
    lines = Lines(size // length, length)
    config = lines.defaults(length, device)
    source = KernelSource(template("narrow"), defines(**lines.macros(config)))
    return lines.launches(source, (x, y), config)
