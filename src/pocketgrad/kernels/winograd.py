"""Winograd convolution with 3x3 taps of channels-last images, and its gradient for the input.

F(4x4) does a quarter of the multiplications, F(2x2) 4 of 9, on numbers that were added before:
fast, and a little less precise. ``numerics="strict"`` excludes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from pocketgrad.base.dtypes import float32
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.kernels.epilogue import Store, storing
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
from pocketgrad.kernels.tiling import (
    VW,
    WGS,
    index_type,
    launch_size,
    power_below,
    result_of,
    root,
    rooted,
)
from pocketgrad.kernels.winograd_work import (
    ACCUMULATORS,
    BLK,
    BY_CHANNELS,
    BY_TILES,
    CB,
    FAR,
    FORM,
    NV,
    STAGED,
    TILE,
    TR,
    Problem,
    Work,
    cpu_choice,
    direct_cost,
)
from pocketgrad.ops.conv import Conv, Conv2d, Conv2dGradInput
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole


class Winograd(Kernel):
    """Base of both directions; stride, dilation and groups of 1."""

    exact = False
    params = (TILE, FORM, VW, NV, TR, BLK, CB, WGS)
    op: type[Conv]

    def matches(self, step: Step) -> bool:
        """The op with 3x3 taps on channels-last images, and elementwise work on its result."""
        if not rooted(step, self.op):
            return False
        node = root(step)
        op, (x, w) = node.op, node.inputs
        assert isinstance(op, Conv)
        plain = op.stride == op.dilation == (1, 1) and op.groups == 1
        images = [view for v, view in step.reads.items() if v is x]
        images += [view for v, view in step.writes.items() if v is node.outputs[0]]
        return plain and w.shape[2:] == (3, 3) and all(v.pitch is not None for v in images)

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Sums that stay in registers, scratch that 32 bits can number."""
        work = Work(self.problem(step), config)
        return (
            config["TR"] * config["NV"] <= ACCUMULATORS
            and config["WGS"] <= device.max_work_group
            and max(work.sizes()) < FAR
        )

    def pays(self, step: Step, device: DeviceInfo) -> bool:
        """Whether it saves more than carrying costs."""
        p = self.problem(step)
        return cpu_choice(p, device.vector_width)[0] < direct_cost(p, device.vector_width)

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """Stages on GPUs; on CPUs whichever operand is smaller is carried beforehand."""
        p = self.problem(step)
        if device.kind == "gpu":
            base = {"TILE": 4, "FORM": STAGED, "VW": 4, "NV": 1, "TR": 4, "BLK": 1, "CB": 16}
            return {**base, "WGS": min(64, device.max_work_group)}
        return cpu_choice(p, device.vector_width)[1]

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """Two launches on CPUs, four on GPUs."""
        p = self.problem(step)
        x, w = (step.reads[v] for v in root(step).inputs)
        widths = (config["VW"], *((8, 4, 2, 1) if p.k % config["VW"] else ()))
        store = storing(step, "n, k, i, j", ("n", "k", "(i)", "(j)"), 1, widths)
        return Rendering(step, Work(p, config), x, w, store).rendered()

    def problem(self, step: Step) -> Problem:
        """What is to be computed."""
        raise NotImplementedError


class WinogradForward(Winograd):
    """The convolution."""

    name = "winograd"
    op = Conv2d

    def problem(self, step: Step) -> Problem:
        node = root(step)
        x, w = (v.shape for v in node.inputs)
        _, _, *plane = node.outputs[0].shape
        assert isinstance(node.op, Conv)
        return Problem(x, w[0], (plane[0], plane[1]), node.op.padding[:2])


class WinogradGradInput(Winograd):
    """Its gradient for the input: a convolution of dy, with what is left of the padding."""

    name = "winograd_grad_input"
    op = Conv2dGradInput

    def problem(self, step: Step) -> Problem:
        node = root(step)
        dy, w = (v.shape for v in node.inputs)
        _, _, *plane = node.outputs[0].shape
        assert isinstance(node.op, Conv)
        top, left = node.op.padding[:2]
        return Problem(dy, w[1], (plane[0], plane[1]), (2 - top, 2 - left), turned=True)


@dataclass(frozen=True)
class Rendering:
    """The launches of a step."""

    step: Step
    work: Work
    x: View
    w: View
    store: Store

    def rendered(self) -> Rendered:
        """In the configuration's form."""
        if 0 in (self.work.tiles, self.work.problem.k):
            return Rendered(())
        v, u, m = (
            whole(Value(TensorType((size,), float32), name))
            for name, size in zip("vum", self.work.sizes(), strict=True)
        )
        x, w, ys = self.x, self.w, self.store.outs
        form, work = self.work.config["FORM"], self.work
        channels = ceil(work.problem.x[1] / work.config["CB"])
        inputs = self._launch(0, (x, v), work.chunks * ceil(self._vectors / self._span))
        weights = self._launch(1, (w, u), work.blocks * channels)
        if form == BY_TILES:
            chunks = self._launch(4, (x, u, *ys, v, m), work.scratch.items)
            return Rendered((weights, chunks), (v.base, u.base, m.base))
        if form == BY_CHANNELS:
            blocks = self._launch(5, (v, w, *ys, u, m), work.scratch.items)
            return Rendered((inputs, blocks), (v.base, u.base, m.base))
        items = work.points * ceil(work.tiles / work.config["TR"]) * work.blocks
        products = self._launch(2, (v, u, m), items)
        outputs = self._launch(3, (m, *ys), work.chunks * work.blocks)
        return Rendered((inputs, weights, products, outputs), (v.base, u.base, m.base))

    @property
    def _lanes(self) -> int:
        """Of the vectors that x is read in."""
        return power_below(min(self.work.config["VW"], self.work.problem.x[1]))

    @property
    def _vectors(self) -> int:
        """Of channels of x."""
        return ceil(self.work.problem.x[1] / self._lanes)

    @property
    def _span(self) -> int:
        """Vectors of channels of an item that carries x."""
        return 1 if self.work.config["FORM"] == STAGED else self._vectors

    def _launch(self, stage: int, args: tuple[View, ...], items: int) -> Launch:
        work, config = self.work, self.work.config
        p, group = work.problem, config["WGS"]
        macros = defines(
            **size_macros(p, config["TILE"]),
            **image_macros("X", self.x),
            **image_macros("Y", result_of(self.step)),
            **_weights(p, self.w),
            **work.scratch.macros(),
            **{name: config[name] for name in ("TILE", "VW", "NV", "TR", "CB", "WGS")},
            IW=self._lanes,
            TC=work.chunk,
            SPAN=self._span,
            SHARE=work.share,
            STAGE=stage,
            ITEMS=items,
            INDEX=index_type(self.x, self.w, *self.store.outs, *args, items=items),
        )
        text = template("winograd_points") + template("winograd")
        stores = self.store.macros if stage >= 3 else ()
        return Launch(KernelSource(text, macros + stores), args, *launch_size(items, group))


def size_macros(p: Problem, tile: int) -> dict[str, object]:
    """Sizes of images and tiles, and where the first tile begins."""
    n, c, h, w = p.x
    (oh, ow), (rows, columns) = p.plane, p.grid(tile)
    return {
        "N": n, "C": c, "K": p.k, "H": h, "W": w, "OH": oh, "OW": ow, "TH": rows, "TW": columns,
        "H0": f"({-p.before[0]})", "W0": f"({-p.before[1]})",
    }  # fmt: skip


def image_macros(letter: str, view: View) -> dict[str, object]:
    """Type and strides; of an axis of size 1 its own stride may be anything."""
    _, _, h, w = view.shape
    pitch = view.pitch or 0  # none: stored through an epilogue, which knows
    return {
        f"T{letter}": view.base.dtype.cl,
        f"{letter}N": h * w * pitch,
        f"{letter}H": w * pitch,
        f"{letter}W": pitch,
    }


def _weights(p: Problem, w: View) -> dict[str, object]:
    k, c, r, s = w.strides
    if not p.turned:
        return {"TT": w.base.dtype.cl, "W_0": 0, "W_K": k, "W_C": c, "W_R": r, "W_S": s}
    start, back_r, back_s = 2 * (r + s), f"({-r})", f"({-s})"
    return {"TT": w.base.dtype.cl, "W_0": start, "W_K": c, "W_C": k, "W_R": back_r, "W_S": back_s}
