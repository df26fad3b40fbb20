"""Winograd's gradient of a 3x3 convolution for its weights, of channels-last images.

Sums of products at each point over all tiles, carried back to 3x3 taps once. Images come in groups
whose carried numbers stay in the last cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import ceil, prod

from pocketgrad.base.dtypes import float32
from pocketgrad.ir.core import TensorType, Value
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
    alone,
    index_type,
    launch_size,
    power_below,
    root,
    rooted,
)
from pocketgrad.kernels.winograd import image_macros, size_macros
from pocketgrad.kernels.winograd_work import (
    ACCUMULATORS,
    CORES,
    FAR,
    INPUT,
    LAUNCH,
    MOVE,
    NV,
    PRODUCT_RATE,
    PUT,
    TILE,
    WEIGHTS,
    Problem,
    direct_cost,
    odd_lines,
    product_rate,
)
from pocketgrad.ops.conv import Conv, Conv2dGradWeight
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole

TR = Param("TR", (1, 2, 4, 8, 16), 4, "channels of x of a product")
CB = Param("CB", (16, 32, 64), 16, "channels of x of a block")
GRP = Param("GRP", (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64), 1, "groups of images")
LAST_CACHE = 2_000_000  # floats of carried numbers at a time: a quarter of a last cache of 32 MB
DY = {2: 60, 4: 190}  # carrying the cotangents of a tile, for every vector
ITEMS = 16  # that share a launch on CPUs


@dataclass(frozen=True)
class Work:
    """A problem cut up by a configuration."""

    problem: Problem
    config: Config
    device: DeviceInfo

    @property
    def points(self) -> int:
        """Numbers of a carried tile."""
        return (self.config["TILE"] + 2) ** 2

    @property
    def kb(self) -> int:
        """Channels of dy of a block."""
        return self.config["NV"] * self.config["VW"]

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks along the channels of x and of dy."""
        return ceil(self.problem.x[1] / self.config["CB"]), ceil(self.problem.k / self.kb)

    @property
    def images(self) -> int:
        """Of a group, of which the last may have fewer."""
        return ceil(self.problem.x[0] / self.config["GRP"])

    @property
    def groups(self) -> list[int]:
        """The sizes of all groups."""
        n, each = self.problem.x[0], self.images
        return [min(each, n - start) for start in range(0, n, each)]

    @property
    def share(self) -> int:
        """Blocks of an item."""
        return max(1, prod(self.blocks) // ITEMS) if self.device.kind == "cpu" else 1

    @property
    def strides(self) -> dict[str, int]:
        """Of scratch: odd numbers of cache lines, as in winograd.py."""
        tiles = self.images * prod(self.problem.grid(self.config["TILE"]))
        v_t = odd_lines(self.blocks[0] * self.config["CB"])
        m_t = odd_lines(self.blocks[1] * self.kb)
        return {
            "V_T": v_t,
            "V_P": odd_lines(tiles * v_t),
            "M_T": m_t,
            "M_P": odd_lines(tiles * m_t),
            "U_P": odd_lines(self.config["CB"] * self.kb),
        }

    def sizes(self) -> tuple[int, int, int]:
        """Floats of v, m and u."""
        s, blocks = self.strides, prod(self.blocks)
        slices = blocks if len(self.groups) > 1 else ceil(blocks / self.share)
        return self.points * s["V_P"], self.points * s["M_P"], self.points * s["U_P"] * slices


class WinogradGradWeight(Kernel):
    """Stride, dilation and groups of 1."""

    name = "winograd_grad_weight"
    exact = False
    params = (TILE, VW, NV, TR, CB, GRP, WGS)

    def matches(self, step: Step) -> bool:
        """The op alone, with 3x3 taps, on channels-last images."""
        if not rooted(step, Conv2dGradWeight) or not alone(step):
            return False
        op = root(step).op
        assert isinstance(op, Conv2dGradWeight)
        plain = op.stride == op.dilation == (1, 1) and op.groups == 1 and op.rs == (3, 3)
        return plain and all(step.reads[v].pitch is not None for v in root(step).inputs)

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Sums that stay in registers, scratch that 32 bits can number."""
        work = Work(problem_of(step), config, device)
        return (
            config["TR"] * config["NV"] <= ACCUMULATORS
            and config["GRP"] <= work.problem.x[0]
            and config["WGS"] <= device.max_work_group
            and max(work.sizes()) < FAR
        )

    def pays(self, step: Step, device: DeviceInfo) -> bool:
        """Whether it saves more than carrying costs."""
        p = problem_of(step)
        return choice(p, device)[0] < direct_cost(p, device.vector_width)

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """What costs least by the model."""
        config = choice(problem_of(step), device)[1]
        if device.kind == "gpu":
            return {**config, "VW": 4, "NV": 1, "TR": 4, "WGS": min(64, device.max_work_group)}
        return config

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """Two launches for each group of images."""
        work = Work(problem_of(step), config, device)
        x, dy = (step.reads[v] for v in root(step).inputs)
        (y,) = step.writes.values()
        scratch = [
            whole(Value(TensorType((size,), float32), name))
            for name, size in zip("vmu", work.sizes(), strict=True)
        ]
        launches = Rendering(work, x, dy, y, scratch).launches()
        return Rendered(tuple(launches), tuple(view.base for view in scratch))


@cache
def choice(p: Problem, device: DeviceInfo) -> tuple[float, Config]:
    """The cheapest configuration for a CPU and its cost."""
    found: list[tuple[float, Config]] = []
    for tile, (tr, nv), cb in product(TILE.values, ((8, 2), (4, 4), (16, 1)), CB.values):
        config = {"TILE": tile, "VW": device.vector_width, "NV": nv, "TR": tr, "CB": cb, "WGS": 1}
        whole_batch = Work(p, {**config, "GRP": 1}, device)
        carried = sum(whole_batch.sizes()[:2])
        wanted = min(p.x[0], ceil(carried / LAST_CACHE))
        groups = next((g for g in GRP.values if g >= wanted), GRP.values[-1])
        work = Work(p, {**config, "GRP": min(groups, p.x[0])}, device)
        found.append((cost(work), work.config))
    return min(found, key=lambda pair: pair[0])


def cost(work: Work) -> float:
    """What a configuration takes, in multiplications of vectors; constants as in winograd.py."""
    p, config = work.problem, work.config
    tile, width = config["TILE"], config["VW"]
    tiles = p.tiles(tile)
    c_blocks, k_blocks = work.blocks
    rows = ceil(p.x[1] / config["TR"]) * config["TR"]
    products = work.points * tiles * rows * k_blocks * config["NV"]
    carried = tiles * (INPUT[tile] * ceil(p.x[1] / width) + DY[tile] * ceil(p.k / width))
    back = WEIGHTS[tile] * p.x[1] * k_blocks * config["NV"]
    moved = work.points * tiles * (p.x[1] * k_blocks + p.k * c_blocks)
    moved += 2 * work.points * p.x[1] * p.k * (len(work.groups) - 1)
    put = work.points * tiles * (p.x[1] + p.k) * PUT
    rate = PRODUCT_RATE * product_rate(config)
    items = ceil(c_blocks * k_blocks / work.share)
    idle = CORES * ceil(items / CORES) * work.share / (c_blocks * k_blocks) + 1 / items
    launches = 2 * len(work.groups) * LAUNCH
    return (products / rate + back + moved * MOVE) * idle + carried + put + launches


def problem_of(step: Step) -> Problem:
    """The convolution whose weights the gradient is for."""
    op = root(step).op
    assert isinstance(op, Conv)
    x, dy = (v.shape for v in root(step).inputs)
    return Problem(x, dy[1], (dy[2], dy[3]), op.padding[:2])


@dataclass(frozen=True)
class Rendering:
    """The launches of a step; scratch is v, m and u."""

    work: Work
    x: View
    dy: View
    y: View
    scratch: list[View]

    def launches(self) -> Iterator[Launch]:
        """Group by group."""
        v, m, u = self.scratch
        first, groups = 0, self.work.groups
        items = ceil(prod(self.work.blocks) / self.work.share)
        for i, images in enumerate(groups):
            x, dy = (_part(view, first, images) for view in (self.x, self.dy))
            problem = replace(self.work.problem, x=x.shape)
            tiles = problem.tiles(self.work.config["TILE"])
            each = max(1, tiles // ITEMS) if self.work.device.kind == "cpu" else 1
            flags = {"MORE": int(i > 0), "LAST": int(i == len(groups) - 1), "TC": each}
            yield self._launch(0, problem, (x, dy, v, m), ceil(tiles / each), flags)
            outs = (self.y,) if flags["LAST"] else ()
            yield self._launch(1, problem, (v, m, u, *outs), items, flags)
            first += images

    def _launch(
        self, stage: int, p: Problem, args: tuple[View, ...], items: int, flags: dict[str, int]
    ) -> Launch:
        work, config = self.work, self.work.config
        k, c, r, s = self.y.strides
        macros = defines(
            **size_macros(p, config["TILE"]),
            **image_macros("X", self.x),
            **image_macros("D", self.dy),
            **work.strides,
            **{name: config[name] for name in ("TILE", "VW", "NV", "TR", "CB", "WGS")},
            **flags,
            W_K=k,
            W_C=c,
            W_R=r,
            W_S=s,
            TY=self.y.base.dtype.cl,
            IW=power_below(min(config["VW"], p.x[1])),
            JW=power_below(min(config["VW"], p.k)),
            SHARE=work.share,
            SLICES=int(len(work.groups) > 1),
            STAGE=stage,
            ITEMS=items,
            INDEX=index_type(self.x, self.dy, self.y, *self.scratch, items=items),
        )
        source = template("winograd_points") + template("winograd_grad_weight")
        return Launch(KernelSource(source, macros), args, *launch_size(items, config["WGS"]))


def _part(view: View, first: int, images: int) -> View:
    """Some images of a batch."""
    n, *rest = view.shape
    assert first + images <= n
    pitch = view.pitch
    assert pitch is not None
    step = prod(rest[1:]) * pitch
    return replace(view, offset=view.offset + first * step, shape=(images, *rest))
