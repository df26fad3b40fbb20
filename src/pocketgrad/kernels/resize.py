"""Resampling along one axis, and its gradient; positions come as C expressions from the op."""

from __future__ import annotations

from math import prod

from pocketgrad.base.dtypes import float32
from pocketgrad.kernels.lines import PARAMS, Lines, only_node
from pocketgrad.kernels.spec import (
    Config,
    DeviceInfo,
    Kernel,
    KernelSource,
    Rendered,
    defines,
    template,
)
from pocketgrad.ops.resize import Resize1d, Resize1dGrad
from pocketgrad.plan.plan import Step

LARGEST = 2**31 - 1  # positions are ints: the product of both lengths has to fit


class ResizeKernel(Kernel):
    """Both directions: lines lie along what is written."""

    name = "resize"
    params = PARAMS

    def matches(self, step: Step) -> bool:
        node = only_node(step)
        if node is None or not isinstance(node.op, Resize1d | Resize1dGrad):
            return False
        work = Resampling(step)
        largest = 2 * (work.places.size + 1) * (work.places.count + 1)
        return work.x.dense and work.y.dense and largest <= LARGEST

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        behind = Resampling(step).behind
        return config["VW"] <= max(1, behind) and config["WGS"] <= device.max_work_group

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        work = Resampling(step)
        return work.lines.defaults(work.behind, device)

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        work = Resampling(step)
        places, x, y = work.places, work.x, work.y
        macros = work.lines.macros(config) | {
            "H": places.size,
            "S": places.count,
            "R": work.behind,
            "POSITION": places.c_numerator("i"),
            "DEN": places.denominator,
            "NEAREST": int(places.mode == "nearest"),
        }
        if isinstance(work.op, Resize1d):
            macros |= {"XT": x.base.dtype.cl, "YT": y.base.dtype.cl}
            source = KernelSource(template("resize"), defines(**macros))
        else:
            first, past = places.c_readers("h")
            whole_lines = work.behind == 1 and work.lines.segments(config) == 1
            macros |= {
                "CT": x.base.dtype.cl,
                "XT": y.base.dtype.cl,
                "FROM": first,
                "PAST": past,
                "OWN": int(whole_lines and y.base.dtype is float32),
            }
            source = KernelSource(template("resize_grad"), defines(**macros))
        return Rendered(work.lines.launches(source, (x, y), config))


class Resampling:
    """What a step resamples: geometry, the elements behind the axis, what is read and written."""

    def __init__(self, step: Step) -> None:
        node = only_node(step)
        assert node is not None
        assert isinstance(node.op, Resize1d | Resize1dGrad)
        self.op: Resize1d | Resize1dGrad = node.op
        self.x, self.y = step.reads[node.inputs[0]], step.writes[node.outputs[0]]
        self.places = node.op.places(self.x.shape[node.op.axis])
        self.behind = prod(self.x.shape[node.op.axis + 1 :])

    @property
    def lines(self) -> Lines:
        """Lines behind the axis, or along it where it is the last."""
        length = self.behind if self.behind != 1 else self.y.shape[self.op.axis]
        return Lines(prod(self.y.shape) // max(1, length), length)
