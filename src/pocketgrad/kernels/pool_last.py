"""Pooling of images that lie channels-last, slices of a join too: lanes run along channels."""

from __future__ import annotations

from math import ceil

from pocketgrad.ir.core import Node, Op
from pocketgrad.kernels.expression import load, store
from pocketgrad.kernels.lines import PARAMS, Lines, only_node, widest
from pocketgrad.kernels.pool import PoolForward, PoolGrad
from pocketgrad.kernels.spec import (
    Config,
    DeviceInfo,
    Kernel,
    KernelSource,
    Rendered,
    defines,
    template,
)
from pocketgrad.kernels.windows import Geometry, geometry
from pocketgrad.ops.pool import Pool
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

FEW_LINES = 8  # fewer whole lines than this leave cores idle


class PoolLast(Kernel):
    """Base of both directions: a line is a row of pixels, a pixel a whole number of vectors."""

    params = PARAMS
    ops: tuple[type[Op], ...]

    def matches(self, step: Step) -> bool:
        node = only_node(step)
        if node is None or not isinstance(node.op, self.ops):
            return False
        views = [*step.reads.values(), *step.writes.values()]
        return all(view.pitch is not None for view in views) and views[0].shape[1] > 1

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        _, channels, *_ = _written(step).shape
        return config["VW"] <= channels and config["WGS"] <= device.max_work_group

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        _, channels, *_ = _written(step).shape
        work = _work(step, widest(channels, device))
        config = work.defaults(channels, device)
        if device.kind == "cpu" and work.count < FEW_LINES:
            return {**config, "SPAN": 4 if work.length >= 4 * FEW_LINES * config["VW"] else 1}
        return config

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        width, work = config["VW"], _work(step, config["VW"])
        _, channels, *_ = _written(step).shape
        macros = _geometry(step).macros() | work.macros(config) | self._macros(step, width)
        macros |= {"C": channels, "PIXEL": _pixel(channels, width)}
        source = KernelSource(template(self.name), defines(**macros))
        args = (*step.reads.values(), *step.writes.values())
        return Rendered(work.launches(source, args, config))

    def _macros(self, step: Step, width: int) -> dict[str, object]:
        """What only one direction needs."""
        raise NotImplementedError


class PoolLastForward(PoolLast):
    """Max and average pooling."""

    name = "pool_last"
    ops = PoolForward.ops

    def _macros(self, step: Step, width: int) -> dict[str, object]:
        node = _node(step)
        y, index = step.writes.get(node.outputs[0]), step.writes.get(node.outputs[-1])
        is_max = len(node.outputs) == 2
        macros: dict[str, object] = {
            "MAX": int(is_max),
            "VALUE": int(y is not None),
            "INDEX": int(is_max and index is not None),
        }
        macros |= _placed("X", step.reads[node.inputs[0]])
        if y is not None:
            macros |= _placed("Y", y)
        if is_max and index is not None:
            put = store(index.base.dtype, width, "p", 1, "v")
            macros |= _placed("I", index) | {"PUT(v, p)": put}
        return macros


class PoolLastGrad(PoolLast):
    """Gradients of max and average pooling."""

    name = "pool_last_grad"
    ops = PoolGrad.ops

    def _macros(self, step: Step, width: int) -> dict[str, object]:
        node, geo = _node(step), _geometry(step)
        is_max = len(node.inputs) == 2
        macros = geo.readers() | _placed("C", step.reads[node.inputs[-1]])
        macros |= _placed("G", _written(step)) | {"MAX": int(is_max), "H": geo.rows.size}
        if is_max:
            index = step.reads[node.inputs[0]]
            take = load(index.base.dtype, width, "p", 1)
            macros |= _placed("I", index) | {"TAKE(p)": take}
        return macros


def _node(step: Step) -> Node:
    node = only_node(step)
    assert node is not None
    return node


def _written(step: Step) -> View:
    """What a launch goes over: any of the outputs."""
    return next(iter(step.writes.values()))


def _geometry(step: Step) -> Geometry:
    node = _node(step)
    assert isinstance(node.op, Pool)
    forward = isinstance(node.op, PoolForward.ops)
    h, w = (node.inputs[0] if forward else node.outputs[0]).shape[2:]
    return geometry(node.op, (h, w), joined=True)


def _work(step: Step, width: int) -> Lines:
    """Rows of what is written, as elements of whole vectors."""
    n, channels, h, w = _written(step).shape
    geo = _geometry(step)
    if isinstance(_node(step).op, PoolGrad.ops):
        h, w = geo.rows.size, geo.columns.size
    return Lines(n * h, w * _pixel(channels, width))


def _pixel(channels: int, width: int) -> int:
    return ceil(channels / width) * width


def _placed(letter: str, view: View) -> dict[str, object]:
    """Type and strides of a view; of an axis of size 1 its own stride may be anything."""
    _, _, h, w = view.shape
    pitch = view.pitch
    assert pitch is not None
    return {
        f"T{letter}": view.base.dtype.cl,
        f"{letter}N": h * w * pitch,
        f"{letter}H": w * pitch,
        f"{letter}W": pitch,
    }
