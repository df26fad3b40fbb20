"""How Winograd's convolution is cut up, and what that costs: the choice of tile and form.

The constants of the model were fitted to measurements; see docs/performance.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import ceil, prod

from pocketgrad.kernels.spec import Config, Param

TILE = Param("TILE", (2, 4), 4, "results of a tile along each axis")
FORM = Param("FORM", (0, 1, 2), 0, "0: stage by stage, 1: by chunks of tiles, 2: by channels")
NV = Param("NV", (1, 2, 4), 1, "vectors of channels of a block")
TR = Param("TR", (1, 2, 4, 6, 7, 8, 10, 12, 14), 4, "tiles of a product")
BLK = Param("BLK", (1, 2, 4, 8, 16, 32, 64), 1, "products of a chunk of tiles")
CB = Param("CB", (16, 64, 256), 16, "channels of weights carried at a time")

STAGED, BY_TILES, BY_CHANNELS = FORM.values
ACCUMULATORS = 28  # vectors of sums; CPUs have 32 registers at most
LINE = 16  # floats of a cache line
ENOUGH = 8  # items of a launch: two on one core do not make half of the others idle
FAR = 2**30  # floats that an int numbers, and sums of two numbers

# Of the model of costs, in multiplications of vectors; where from: docs/performance.md.
SHAPES = (14, 2), (12, 2), (10, 2), (8, 2), (6, 2), (4, 2), (4, 4), (14, 1), (12, 1), (8, 1)
PRODUCT_RATE = 0.85  # of the arithmetic peak that products reach,
DIRECT_RATE = 0.85  # and direct convolutions
INPUT = {2: 80, 4: 240}  # carrying the numbers of a tile,
OUTPUT = {2: 60, 4: 190}  # the results of a tile back,
WEIGHTS = {2: 60, 4: 140}  # the taps of a channel; once each for every vector
TURNED = 600  # more where weights are read number by number, each from another line
MOVE = 0.2  # a number that comes from the last cache while others are multiplied,
PUT = 2.5  # or goes there; from memory it takes as long
LAST = 1 << 22  # floats that certainly find room in the last cache: 16 MiB
LAUNCH = 60_000  # a launch more
CORES = 2  # whose common finish is waited for
NEAR = 120_000  # floats that a core keeps to itself without loss, of 1 MiB;
SPILLED = 0.12  # as many more cost products so much


@dataclass(frozen=True)
class Problem:
    """A 3x3 convolution of x, [N, C, H, W], to K channels of ``plane``; ``before`` is padding."""

    x: tuple[int, ...]
    k: int
    plane: tuple[int, int]
    before: tuple[int, int]
    turned: bool = False  # the channels of w are exchanged, its taps backwards

    def grid(self, size: int) -> tuple[int, int]:
        """How many tiles of so many results there are along both axes."""
        return ceil(self.plane[0] / size), ceil(self.plane[1] / size)

    def tiles(self, size: int) -> int:
        """Tiles of all images."""
        return self.x[0] * prod(self.grid(size))


@dataclass(frozen=True)
class Scratch:
    """How v, u and m lie: see winograd.cl. Strides are odd numbers of cache lines, so that what is
    a stride apart does not compete for the same places in a cache."""

    v_t: int
    v_p: int
    u_b: int
    u_p: int
    m_t: int
    m_b: int
    m_p: int
    items: int  # with slices of their own

    def macros(self) -> dict[str, object]:
        """The strides."""
        names = "v_t", "v_p", "u_b", "u_p", "m_t", "m_b", "m_p"
        return {name.upper(): getattr(self, name) for name in names}


@dataclass(frozen=True)
class Work:
    """A problem cut up by a configuration."""

    problem: Problem
    config: Config

    @property
    def points(self) -> int:
        """Numbers of a carried tile."""
        return (self.config["TILE"] + 2) ** 2

    @property
    def tiles(self) -> int:
        """Tiles of all images."""
        return self.problem.tiles(self.config["TILE"])

    @property
    def chunk(self) -> int:
        """Tiles of a chunk."""
        return self.config["TR"] * self.config["BLK"]

    @property
    def chunks(self) -> int:
        """Chunks of tiles."""
        return ceil(self.tiles / self.chunk)

    @property
    def kb(self) -> int:
        """Channels of a block."""
        return self.config["NV"] * self.config["VW"]

    @property
    def blocks(self) -> int:
        """Blocks of channels."""
        return ceil(self.problem.k / self.kb)

    @property
    def share(self) -> int:
        """Chunks of an item of the form by tiles."""
        return max(1, self.chunks // ENOUGH)

    @property
    def scratch(self) -> Scratch:
        """Where the carried numbers lie."""
        c, form = self.problem.x[1], self.config["FORM"]
        staged, by_channels = form == STAGED, form == BY_CHANNELS
        rows = self.chunk if form == BY_TILES else self.chunks * self.chunk
        v_t = odd_lines(c)
        u_b = min(c, self.config["CB"]) * self.kb if by_channels else c * self.kb
        m_t = odd_lines(self.blocks * self.kb) if staged else self.kb
        return Scratch(
            v_t=v_t,
            v_p=odd_lines(rows * v_t),
            u_b=u_b,
            u_p=odd_lines(u_b if by_channels else self.blocks * u_b),
            m_t=m_t,
            m_b=self.kb if staged else 0,
            m_p=odd_lines((rows if staged else self.chunk) * m_t),
            items={
                STAGED: 1,
                BY_TILES: ceil(self.chunks / self.share),
                BY_CHANNELS: self.blocks * self.chunks,
            }[form],
        )

    def sizes(self) -> tuple[int, int, int]:
        """Floats of v, u and m."""
        s = self.scratch
        v, u, m = (self.points * plane for plane in (s.v_p, s.u_p, s.m_p))
        if self.config["FORM"] == BY_TILES:
            return v * s.items, u, m * s.items
        return (v, u * s.items, m * s.items) if self.config["FORM"] == BY_CHANNELS else (v, u, m)


def odd_lines(floats: int) -> int:
    """At least so many floats, as an odd number of cache lines."""
    return (ceil(floats / LINE) | 1) * LINE


def direct_cost(p: Problem, width: int) -> float:
    """What a direct convolution takes, in multiplications of vectors."""
    return p.x[0] * prod(p.plane) * p.x[1] * 9 * ceil(p.k / width) / DIRECT_RATE


def cost(work: Work) -> float:
    """What a form for CPUs takes, likewise; the constants are fitted, see docs/performance.md."""
    p, config = work.problem, work.config
    by_tiles, tile, c = config["FORM"] == BY_TILES, config["TILE"], p.x[1]
    vectors = work.blocks * config["NV"]
    rows = ceil(work.tiles / config["TR"]) * config["TR"]
    products = work.points * rows * c * vectors / (PRODUCT_RATE * product_rate(config))
    weights = (WEIGHTS[tile] + (TURNED if p.turned else 0)) * c * vectors
    images = work.tiles * (INPUT[tile] * ceil(c / config["VW"]) + OUTPUT[tile] * vectors)
    carried = work.points * c * (work.blocks * work.kb if by_tiles else work.tiles)
    if by_tiles:
        times = work.chunks * (MOVE if carried < LAST else PUT) if carried > NEAR / 2 else 0
        kept = work.points * (work.chunk * (c + work.kb) + c * work.kb)
    else:
        times, weights = work.blocks * MOVE, weights * work.chunks
        kept = work.points * work.kb * work.chunk
    moved = carried * (times + (PUT if carried > NEAR / 2 else 0))
    spilled = min(1.0, SPILLED * max(0.0, kept / NEAR - 1))
    return (products * (1 + spilled) + weights + images + moved) * idle(work) + LAUNCH


def product_rate(config: Config) -> float:
    """Of sums in registers: they must hide each other's latency and outnumber the loads."""
    tr, nv = config["TR"], config["NV"]
    return 1 / (max(1.0, (tr + nv) / (tr * nv), 8 / (tr * nv)) + 1 / (tr * nv))


def idle(work: Work) -> float:
    """How much longer a launch takes than its work, where items do not divide among cores."""
    items, chunks = work.scratch.items, work.chunks
    if work.config["FORM"] == BY_TILES:
        return CORES * ceil(items / CORES) * work.share / max(1, chunks)
    return CORES * ceil(items / CORES) / max(1, items)


@cache
def cpu_choice(p: Problem, width: int) -> tuple[float, Config]:
    """The cheapest configuration and its cost."""
    found: list[tuple[float, Config]] = []
    for tile, form, (tr, nv), blk in product(
        TILE.values, (BY_TILES, BY_CHANNELS), SHAPES, BLK.values
    ):
        config = {"TILE": tile, "FORM": form, "VW": width, "NV": nv, "TR": tr, "BLK": blk}
        work = Work(p, {**config, "CB": 64, "WGS": 1})
        if blk == 1 or work.tiles > tr * blk // 2:
            found.append((cost(work), work.config))
    return min(found, key=lambda pair: pair[0])
