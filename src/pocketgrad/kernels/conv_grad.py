"""The gradient of a convolution for its weights: sums over positions, lanes added at the end."""

from __future__ import annotations

from math import ceil

from pocketgrad.kernels.conv import FLAT, Problem, best_lanes, forward, taps_macros
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
    WORTH_A_LAUNCH,
    alone,
    dense,
    even_tile,
    groups,
    index_type,
    launch_size,
    parts_for,
    root,
    rooted,
    with_parts,
)
from pocketgrad.ops.conv import Conv2dGradWeight
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

# Vectors of an item, results and operands: CPUs have 32 registers at most.
REGISTERS = 30


class ConvGradWeightKernel(Kernel):
    """Dense images, packed weights; any stride, padding, dilation, groups and size."""

    name = "conv_grad_weight"
    far = True
    params = (
        VW,
        Param("KB", (1, 2, 3, 4, 5, 6, 7, 8), 4, "channels of dy of an item"),
        Param("CB", (1, 2, 3, 4, 5, 6), 1, "channels of x of an item"),
        Param("SB", (1, 2, 3, 4, 5), 1, "taps along a row of an item"),
        FLAT,
        PARTS,
        WGS,
    )

    def matches(self, step: Step) -> bool:
        """The op alone, on dense images of types a device stores."""
        if not rooted(step, Conv2dGradWeight) or not alone(step):
            return False
        return dense(step, root(step).inputs) and step.writes[root(step).outputs[0]].packed

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Vectors no longer than a line, accumulators that stay in registers."""
        p = problem_of(step)
        flat = bool(config["FLAT"])
        if flat and not _can_flatten(p):
            return False
        results = config["KB"] * config["CB"] * config["SB"]
        lanes = p.lanes(flat)
        return (
            results <= REGISTERS
            and config["VW"] < 2 * max(1, lanes.line)
            and config["PARTS"] <= max(1, p.n * lanes.lines)
            and config["WGS"] <= device.max_work_group
        )

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """Square tiles of results; where there are few, the positions are shared."""
        p = problem_of(step)
        cpu = device.kind == "cpu"
        vw, flat = best_lanes([p], device.vector_width, _can_flatten(p)) if cpu else (1, 0)
        lanes = p.lanes(bool(flat))
        r, s = p.rows.number, p.columns.number
        sb = even_tile(s, 5)
        cb = even_tile(p.inputs, max(1, 5 // sb))
        taps = sb * cb
        kb = even_tile(p.outputs, max(1, min(8, (REGISTERS - taps) // (taps + 1))))
        items = p.groups * ceil(p.outputs / kb) * ceil(p.inputs / cb) * r * ceil(s / sb)
        work = p.n * p.groups * p.outputs * p.depth * p.rows.count * p.columns.count
        parts = 1
        if work >= WORTH_A_LAUNCH:
            parts = parts_for(items, groups(device, work), p.n * lanes.lines)
        config = {"VW": vw, "KB": kb, "CB": cb, "SB": sb, "FLAT": flat, "PARTS": parts}
        return {**config, "WGS": 1 if cpu else 64}

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """One launch; a second that adds the parts where the positions are shared."""
        p = problem_of(step)
        x, ct = (step.reads[v] for v in root(step).inputs)
        y = step.writes[root(step).outputs[0]]
        tiles = ceil(p.outputs / config["KB"]) * ceil(p.inputs / config["CB"])
        taps = p.rows.number * ceil(p.columns.number / config["SB"])
        items = config["PARTS"] * p.groups * tiles * taps
        if items == 0:
            return Rendered(())
        # Without anything to add there is nothing to read, and perhaps no memory to point at.
        operands = (x, ct) if p.n else (y, y)

        def launch(out: View) -> Launch:
            macros = defines(
                **taps_macros(p.rows, p.columns, x, config),
                N=p.n,
                G=p.groups,
                KG=p.outputs,
                CG=p.inputs,
                TD=ct.base.dtype.cl,
                TY=out.base.dtype.cl,
                **{f"DW_{axis}": stride for axis, stride in zip("KCRS", y.strides, strict=True)},
                KB=config["KB"],
                CB=config["CB"],
                SB=config["SB"],
                PARTS=config["PARTS"],
                WGS=config["WGS"],
                INDEX=index_type(x, ct, out, items=items),
            )
            source = KernelSource(template("taps") + template("conv_grad_weight"), macros)
            return Launch(source, (*operands, out), *launch_size(items, config["WGS"]))

        if config["PARTS"] == 1:
            return Rendered((launch(y),))
        return with_parts(launch, y, config, device)


def problem_of(step: Step) -> Problem:
    """The convolution whose weights the gradient is for."""
    op = root(step).op
    assert isinstance(op, Conv2dGradWeight)
    x, ct = (step.reads[v].shape for v in root(step).inputs)
    w = step.writes[root(step).outputs[0]].shape
    return forward(op, x, w, ct)


def _can_flatten(p: Problem) -> bool:
    """A vector of dy may run on into the next row only if one of x does at the same place."""
    return p.can_flatten and p.columns.count == p.columns.size
