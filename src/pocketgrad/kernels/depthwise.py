"""Depthwise convolutions of channels-last images, all three directions: lanes along channels."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, prod

from pocketgrad.base.dtypes import float32
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.kernels.conv import Problem, Taps, problems_of
from pocketgrad.kernels.conv_grad import problem_of
from pocketgrad.kernels.epilogue import Store, storing
from pocketgrad.kernels.spec import (
    Config,
    DeviceInfo,
    Kernel,
    KernelSource,
    Launch,
    Param,
    Rendered,
    defines,
    template,
)
from pocketgrad.kernels.tiling import (
    PARTS,
    VW,
    WGS,
    alone,
    groups,
    index_type,
    launch_size,
    power_below,
    root,
    rooted,
)
from pocketgrad.ops.conv import Conv, Conv2d, Conv2dGradInput, Conv2dGradWeight
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, last, whole

TW = Param("TW", (1, 2, 3, 4, 5, 6, 7, 8), 1, "neighbouring outputs that share inputs")
# Sums of the gradient in registers, beside what they are made from.
SUMS = 25
# A band of images that a core's cache holds.
BAND_NBYTES = 256 << 10


class Depthwise(Kernel):
    """Convolution and gradient for the input; any kernel, stride, padding, dilation, multiplier."""

    name = "depthwise"
    far = True
    params = (VW, TW, Param("RPT", (1, 2, 4, 8, 16, 32, 64), 1, "rows of an item"), WGS)

    def matches(self, step: Step) -> bool:
        """One of the two ops, elementwise work on its result, all images channels-last."""
        if not rooted(step, Conv2d, Conv2dGradInput):
            return False
        x, w = root(step).inputs
        images = [step.reads[x], *(v for v in step.writes.values() if len(v.shape) == 4)]
        return _is_depthwise(step, w.shape) and all(v.pitch is not None for v in images)

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Vectors and runs no longer than there is to compute."""
        problems = problems_of(step)
        return (
            config["WGS"] <= device.max_work_group
            and config["VW"] <= problems[0].groups * problems[0].outputs
            and all(config["TW"] <= max(1, _run(p.columns)) for p in problems)
        )

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """Runs that leave few outputs over; rows enough for all cores."""
        problems = problems_of(step)
        p = problems[0]
        if device.kind == "gpu":
            return {"VW": 1, "TW": 1, "RPT": 1, "WGS": min(64, device.max_work_group)}
        channels, lines = p.groups * p.outputs, p.n * p.rows.count
        enough = groups(device, lines * p.columns.count * channels * max(1, p.depth))
        rpt = max(v for v in self.params[2].values if v == 1 or v * enough <= lines)
        run = min(max(1, _run(q.columns)) for q in problems)
        return {"VW": power_below(min(channels, device.vector_width)), "TW": _even(run),
                "RPT": rpt, "WGS": 1}  # fmt: skip

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """One launch, or one for each phase of a strided gradient."""
        store = storing(step, "n, k, h, w", ("n", "k", "h", "w"), 1, (config["VW"],))
        return Rendered(tuple(_launch(step, p, store, config) for p in problems_of(step)))


class DepthwiseGradWeight(Kernel):
    """The gradient for the weights: sums of parts of the rows, and a launch that adds them."""

    name = "depthwise_grad"
    far = True
    params = (
        VW,
        TW,
        Param("TB", (1, 2, 3, 4, 5), 1, "rows of taps at a time"),
        Param("BAND", (1, 2, 4, 8, 16), 1, "rows of images at a time"),
        PARTS,
    )

    def matches(self, step: Step) -> bool:
        if not rooted(step, Conv2dGradWeight) or not alone(step):
            return False
        w = root(step).outputs[0].shape
        return _is_depthwise(step, w) and all(v.pitch is not None for v in step.reads.values())

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Sums that stay in registers, vectors and runs no longer than there is to compute."""
        p = problem_of(step)
        return (
            config["VW"] <= p.groups * p.outputs
            and config["TW"] <= max(1, _run(p.columns))
            and config["TB"] <= p.rows.number
            and (config["TB"] == 1 or config["TB"] * p.columns.number <= SUMS)
            and config["PARTS"] <= p.n * p.rows.count
        )

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """All taps of a kernel of 5 by 5 or less at a time; bands that stay in cache."""
        p = problem_of(step)
        if device.kind == "gpu":
            return {q.name: q.default for q in self.params}
        channels, lines = p.groups * p.outputs, p.n * p.rows.count
        row_nbytes = 4 * (p.columns.count + p.rows.stride * p.columns.size) * channels
        enough = groups(device, lines * p.columns.count * channels * p.depth)
        fitting = [v for v in self.params[3].values if v * row_nbytes <= BAND_NBYTES]
        return {
            "VW": power_below(min(channels, device.vector_width)),
            "TW": _even(max(1, _run(p.columns)), most=4),
            "TB": min(p.rows.number, max(1, min(5, SUMS // p.columns.number))),
            "BAND": max(fitting, default=1),
            "PARTS": max(v for v in PARTS.values if v <= min(enough, max(1, lines))),
        }

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """One launch for the parts, one that adds them."""
        p = problem_of(step)
        x, dy = (step.reads[v] for v in root(step).inputs)
        y = step.writes[root(step).outputs[0]]
        channels, vw, parts = p.groups * p.outputs, config["VW"], config["PARTS"]
        taps = p.rows.number, p.columns.number
        size = TensorType((parts, *taps, ceil(channels / vw) * vw), float32)
        sums = whole(Value(size, "sums"))
        macros = defines(
            **_geometry(p, x), K=channels, XDIV=p.outputs, YP=dy.pitch, TD=dy.base.dtype.cl,
            **config, INDEX=index_type(x, dy, sums),
        )  # fmt: skip
        first = Launch(
            KernelSource(template("depthwise_grad"), macros), (x, dy, sums), (parts,), (1,)
        )
        macros = defines(
            K=channels, R=taps[0], S=taps[1], VW=vw, PARTS=parts, TY=y.base.dtype.cl,
            DW_K=y.strides[0], DW_R=y.strides[2], DW_S=y.strides[3],
        )  # fmt: skip
        add = Launch(
            KernelSource(template("depthwise_sum"), macros), (sums, y), (prod(taps),), (1,)
        )
        return Rendered((first, add), (sums.base,))


def _is_depthwise(step: Step, w: Iterable[int]) -> bool:
    """Whether each group has one channel of the convolution's input."""
    op = root(step).op
    assert isinstance(op, Conv)
    return op.groups > 1 and tuple(w)[1] == 1


def _inner(t: Taps) -> tuple[int, int]:
    """From and to which outputs all taps are inside."""
    reach = max(0, t.number - 1) * t.step
    low, high = t.first + min(0, reach), t.first + max(0, reach)
    first = min(t.count, max(0, ceil(-low / t.stride)))
    return first, max(first, min(t.count, (t.size - 1 - high) // t.stride + 1))


def _run(t: Taps) -> int:
    first, end = _inner(t)
    return end - first


def _even(run: int, most: int = 8) -> int:
    """Outputs at a time: as many as leave the fewest over, of at most so many."""
    return min(range(1, min(run, most) + 1), key=lambda t: ceil(run / t) * t - run + run / t)


def _geometry(p: Problem, x: View) -> dict[str, object]:
    """What both templates know of the input and its taps."""
    lo, hi = _inner(p.columns)
    _, _, h, w = x.shape
    pitch = x.pitch
    assert pitch is not None
    rows, columns = p.rows, p.columns
    return {
        "LINES": p.n * rows.count, "OH": rows.count, "OW": columns.count,
        "H": h, "W": w, "R": rows.number, "S": columns.number,
        "SH": rows.stride, "SW": columns.stride,
        "DR": f"({rows.step})", "DS": f"({columns.step})",
        "H0": f"({rows.first})", "W0": f"({columns.first})",
        "LO": lo, "HI": hi, "TX": x.base.dtype.cl,
        "XN": h * w * pitch, "XH": w * pitch, "XW": pitch,
    }  # fmt: skip


def _launch(step: Step, p: Problem, store: Store, config: Config) -> Launch:
    node = root(step)
    x, w = (step.reads[v] for v in node.inputs)
    y = step.writes.get(node.outputs[0]) or last(node.outputs[0])
    per_k, _, down, along = w.strides
    pitch, (_, channels, height, width) = y.pitch, y.shape
    assert pitch is not None
    lines = p.n * p.rows.count
    items = ceil(lines / config["RPT"])
    macros = defines(
        **_geometry(p, x),
        C=channels, XMUL=p.inputs, XDIV=p.outputs,
        W_0=p.rows.w_first * down + p.columns.w_first * along,
        W_K=p.inputs * per_k, W_M=per_k,
        W_R=p.rows.w_step * down, W_S=p.columns.w_step * along,
        YN=height * width * pitch, YH=width * pitch, YW=pitch,
        Y_H0=p.rows.y_first, Y_HS=p.rows.y_step, Y_W0=p.columns.y_first, Y_WS=p.columns.y_step,
        TT=w.base.dtype.cl, TY=store.outs[0].base.dtype.cl,
        **config, INDEX=index_type(x, w, *store.outs, items=items),
    )  # fmt: skip
    source = KernelSource(template("depthwise"), macros + store.macros)
    return Launch(source, (x, w, *store.outs), *launch_size(items, config["WGS"]))
