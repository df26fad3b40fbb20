"""Convolution and its gradient for the input, one template; see conv_grad.py for the weights.

The gradient for the input is a convolution of dy with channels exchanged and taps backwards. With a
stride it falls into phases, input positions with the same remainder, each a convolution of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, gcd, prod

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
    VW,
    WGS,
    dense,
    even_tile,
    groups,
    index_type,
    launch_size,
    result_of,
    root,
    rooted,
)
from pocketgrad.ops.conv import Conv, Conv2d, Conv2dGradInput
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View

FLAT = Param("FLAT", (0, 1), 0, "1: lanes run on from row to row")

# Positions times channels times taps that make an item worth starting.
ITEM_WORK = 20_000


@dataclass(frozen=True)
class Taps:
    """One axis of one launch: output i reads ``first + i·stride + t·step`` for its taps t.

    Tap t has weight ``w_first + t·w_step``; output i is stored at ``y_first + i·y_step``.
    """

    size: int  # of the input
    count: int  # of outputs
    number: int  # of taps
    first: int
    stride: int = 1
    step: int = 1
    w_first: int = 0
    w_step: int = 1
    y_first: int = 0
    y_step: int = 1

    @property
    def padded(self) -> bool:
        """Whether some tap lies outside the input."""
        reach = (self.number - 1) * self.step
        last = self.first + (self.count - 1) * self.stride + max(0, reach)
        return self.number > 0 and (self.first + min(0, reach) < 0 or last >= self.size)


@dataclass(frozen=True)
class Lanes:
    """How positions are laid on vectors: taps.cl."""

    flat: bool
    lines: int
    line: int

    def vectors(self, width: int) -> int:
        """Vectors on a line."""
        return ceil(self.line / width)

    def rate(self, width: int) -> float:
        """Useful positions per vector."""
        return self.line / max(1, self.vectors(width))


@dataclass(frozen=True)
class Problem:
    """A convolution as conv.cl computes it: channels of input and output per group, both axes."""

    n: int
    groups: int
    inputs: int
    outputs: int
    plane: tuple[int, int]  # of the output as a whole
    rows: Taps
    columns: Taps
    exchanged: bool = False  # the channels of w: outputs here are what w has as inputs

    @property
    def depth(self) -> int:
        """Multiplications per result."""
        return self.inputs * self.rows.number * self.columns.number

    @property
    def can_flatten(self) -> bool:
        """Whether vectors may run on from row to row."""
        unit = self.rows.stride == self.columns.stride == 1
        return unit and 0 < self.columns.count <= self.columns.size and self.rows.count > 0

    def lanes(self, flat: bool) -> Lanes:
        """Lines of positions."""
        if flat:
            length = (self.rows.count - 1) * self.columns.size + self.columns.count
            return Lanes(True, 1, length)
        return Lanes(False, self.rows.count, self.columns.count)


Shape = tuple[int, ...]


def forward(op: Conv, x: Shape, w: Shape, y: Shape) -> Problem:
    """The convolution itself, of tensors of these shapes."""
    (sh, sw), (dh, dw), (top, left) = op.stride, op.dilation, op.padding[:2]
    k, c, r, s = w[0] // op.groups, *w[1:]
    return Problem(
        n=x[0],
        groups=op.groups,
        inputs=c,
        outputs=k,
        plane=(y[2], y[3]),
        rows=Taps(x[2], y[2], r, -top, sh, dh),
        columns=Taps(x[3], y[3], s, -left, sw, dw),
    )


def backward(op: Conv, dy: Shape, w: Shape, x: Shape) -> list[Problem]:
    """The gradient for the input, phase by phase."""
    (sh, sw), (dh, dw), (top, left) = op.stride, op.dilation, op.padding[:2]
    k, c, r, s = w[0] // op.groups, *w[1:]
    return [
        Problem(
            n=dy[0],
            groups=op.groups,
            inputs=k,
            outputs=c,
            plane=(x[2], x[3]),
            rows=rows,
            columns=columns,
            exchanged=True,
        )
        for rows in _phases(dy[2], x[2], r, sh, dh, top)
        for columns in _phases(dy[3], x[3], s, sw, dw, left)
    ]


def _phases(ct: int, size: int, taps: int, stride: int, dilation: int, before: int) -> list[Taps]:
    """For each remainder, which taps reach it: those r with ``at - r·dilation`` divisible."""
    common = gcd(stride, dilation)
    found = []
    for phase in range(min(stride, size)):
        at = phase + before
        fit = [r for r in range(taps) if (at - r * dilation) % stride == 0]
        start = fit[0] if fit else 0
        first = (at - start * dilation) // stride
        step, jump = -(dilation // common), stride // common
        count = ceil((size - phase) / stride)
        found.append(Taps(ct, count, len(fit), first, 1, step, start, jump, phase, stride))
    return found


def problems_of(step: Step) -> list[Problem]:
    """What is to be launched for a convolution or its gradient for the input."""
    node = root(step)
    read, w = (step.reads[v].shape for v in node.inputs)
    written = node.outputs[0].shape
    assert isinstance(node.op, Conv)
    if isinstance(node.op, Conv2dGradInput):
        return backward(node.op, read, w, written)
    return [forward(node.op, read, w, written)]


class ConvKernel(Kernel):
    """Dense images, weights anywhere; any stride, padding, dilation, groups and size."""

    name = "conv"
    far = True
    params = (
        VW,
        Param("KB", tuple(range(1, 17)), 4, "output channels of an item"),
        Param("TW", (1, 2, 3, 4), 1, "vectors of an item"),
        Param("BLK", (1, 2, 4, 8, 16, 32, 64), 1, "blocks of an item, one after another"),
        FLAT,
        WGS,
    )

    def matches(self, step: Step) -> bool:
        """One of the two ops on dense images, and elementwise work on its result."""
        if not rooted(step, Conv2d, Conv2dGradInput):
            return False
        x, _ = root(step).inputs
        return dense(step, (x, *root(step).outputs))

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Vectors no longer than a line, accumulators that stay in registers."""
        if config["KB"] * config["TW"] > 32 or config["WGS"] > device.max_work_group:
            return False
        return all(_legal(p, config) for p in problems_of(step))

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """Lanes where they do most, tiles near 16 accumulators, items worth starting."""
        problems = problems_of(step)
        if device.kind == "gpu":
            kb = even_tile(problems[0].outputs, 8)
            return {"VW": 1, "KB": kb, "TW": 1, "BLK": 1, "FLAT": 0, "WGS": 64}
        largest = max(problems, key=lambda p: p.rows.count * p.columns.count * max(1, p.depth))
        vw, flat = best_lanes(problems, device.vector_width)
        lanes = largest.lanes(bool(flat))
        vectors = max(1, lanes.vectors(vw))
        tw, kb = _tile(largest, vectors)
        blocks = lanes.lines * ceil(vectors / tw)
        per_block = kb * tw * vw * max(1, largest.depth)
        planes = largest.n * largest.groups * ceil(largest.outputs / kb)
        enough = groups(device, planes * blocks * per_block)
        blk = 1
        while (
            blk < 64
            and blk * per_block < ITEM_WORK
            and blk < blocks
            and planes * ceil(blocks / (2 * blk)) >= enough
        ):
            blk *= 2
        return {"VW": vw, "KB": kb, "TW": tw, "BLK": blk, "FLAT": flat, "WGS": 1}

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """One launch, or one for each phase of a strided gradient."""
        x, w = (step.reads[v] for v in root(step).inputs)
        store = _store(step, config["VW"])
        problems = [p for p in problems_of(step) if p.n and p.outputs]
        return Rendered(tuple(_launch(p, (x, w), store, config) for p in problems))


def _runs(step: Step, width: int) -> list[int]:
    """Vectors, the longest first, in which a row is stored that does not fill those of lanes."""
    columns = result_of(step).shape[3]
    return [w for w in (8, 4, 2) if w < width and w & columns]


def _store(step: Step, width: int) -> Store:
    """What happens to results; lanes run along rows, or down a plane one column wide."""
    columns, runs = result_of(step).shape[3], _runs(step, width)
    at = ("n", "k", f"(p) / {columns}", f"(p) % {columns}")
    store = storing(step, "n, k, p", at, 3 if columns != 1 else 2, (width, *runs, 1))
    by_runs = ("RUNS", " ".join(f"STORE_RUN({w})" for w in runs))
    return Store((*store.macros, by_runs), store.outs)


def _tile(p: Problem, vectors: int) -> tuple[int, int]:
    """Vectors and channels of an item: about 16 accumulators that divide both axes well.

    A vector at the border costs tests, so a wasted one costs more there than a narrow tile does.
    """
    padded = p.rows.padded or p.columns.padded
    if p.outputs < 3:
        tw = min(4, vectors)
    elif vectors == 1 or (padded and vectors % 2 and vectors != 3):
        tw = 1
    else:
        tw = 3 if vectors == 3 else 2
    return tw, even_tile(p.outputs, {1: 16, 2: 8, 3: 6, 4: 4}[tw])


def _legal(problem: Problem, config: Config) -> bool:
    if config["FLAT"] and not problem.can_flatten:
        return False
    return config["VW"] < 2 * max(1, problem.lanes(bool(config["FLAT"])).line)


def best_lanes(problems: list[Problem], width: int, can_flatten: bool = True) -> tuple[int, int]:
    """Vector width and flatness with the most useful positions per vector; the first of equals."""
    choices = [
        {"VW": vw, "FLAT": flat}
        for flat in ((0, 1) if can_flatten else (0,))
        for vw in reversed(VW.values)
        if vw <= width
    ]

    def rate(choice: Config) -> float:
        if not all(_legal(p, choice) for p in problems):
            return 0.0
        found = []
        for p in problems:
            lanes = p.lanes(bool(choice["FLAT"]))
            # Positions between the rows of a flattened plane that is wider than the output.
            useful = p.rows.count * p.columns.count / max(1, lanes.lines * lanes.line)
            apart = 0.9 if choice["FLAT"] and useful < 1 else 1.0  # stored lane by lane
            found.append(lanes.rate(choice["VW"]) * useful * apart)
        return min(found)

    best = max(choices, key=rate)
    return best["VW"], best["FLAT"]


def taps_macros(rows: Taps, columns: Taps, x: View, config: Config) -> dict[str, object]:
    """The macros of taps.cl."""
    return {
        "H": rows.size,
        "W": columns.size,
        "OH": rows.count,
        "OW": columns.count,
        "R": rows.number,
        "S": columns.number,
        "SH": rows.stride,
        "SW": columns.stride,
        "DR": f"({rows.step})",
        "DS": f"({columns.step})",
        "H0": f"({rows.first})",
        "W0": f"({columns.first})",
        "PADDED": int(rows.padded or columns.padded),
        "XSIZE": prod(x.shape),
        "TX": x.base.dtype.cl,
        "FLAT": config["FLAT"],
        "VW": config["VW"],
    }


def _launch(p: Problem, views: tuple[View, View], store: Store, config: Config) -> Launch:
    (x, w), outs = views, store.outs
    lanes = p.lanes(bool(config["FLAT"]))
    blocks = lanes.lines * ceil(lanes.vectors(config["VW"]) / config["TW"])
    chunks = ceil(blocks / config["BLK"])
    items = p.n * p.groups * ceil(p.outputs / config["KB"]) * chunks
    taps = p.rows.number * p.columns.number
    pitch = p.plane[1]
    along_rows, along_columns = w.strides[2:]
    macros = defines(
        **taps_macros(p.rows, p.columns, x, config),
        N=p.n,
        G=p.groups,
        KG=p.outputs,
        CG=p.inputs if taps else 0,
        TT=w.base.dtype.cl,
        TY=outs[0].base.dtype.cl,
        W_0=p.rows.w_first * along_rows + p.columns.w_first * along_columns,
        W_G=(p.inputs if p.exchanged else p.outputs) * w.strides[0],
        W_K=w.strides[1 if p.exchanged else 0],
        W_C=w.strides[0 if p.exchanged else 1],
        W_R=p.rows.w_step * along_rows,
        W_S=p.columns.w_step * along_columns,
        PLANE=prod(p.plane),
        Y_0=p.rows.y_first * pitch + p.columns.y_first,
        Y_R=p.rows.y_step * pitch,
        Y_C=p.columns.y_step,
        KB=config["KB"],
        TW=config["TW"],
        BLK=config["BLK"],
        WGS=config["WGS"],
        INDEX=index_type(x, w, *outs, items=items),
    )
    # Without anything to add there is nothing to read, and perhaps no memory to point at.
    operands = (x, w) if p.inputs * taps else (outs[0], outs[0])
    source = KernelSource(template("taps") + template("conv"), macros + store.macros)
    return Launch(source, (*operands, *outs), *launch_size(items, config["WGS"]))
