"""Large matrix products on CPUs: operands go to panels where that pays, tiles fill registers.

The copies are launches of their own; their cost is one pass over an operand, saved as often as
tiles read it. Small products stay with matmul.py.
"""

from __future__ import annotations

from math import ceil, inf

from pocketgrad.base.dtypes import float32
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.kernels.matmul import Axis, Product, batch_offset, product_of, store_of
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
    alone,
    even_tile,
    index_type,
    launch_size,
    power_below,
    rooted,
)
from pocketgrad.ops.linalg import MatMul
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole

WORTH_PANELS = 10_000_000  # multiplications below which a launch more costs what it saves
LEAST_SIDE = 128  # rows and columns below which panels are read too rarely
PART = 64  # columns that one item copies
CACHED_NBYTES = 256_000  # of a second-level cache, for rows that many panels pass by
ITEMS = 16  # at least, so that cores end together
FAR = 1.3  # what reading columns that are apart in memory costs, against a panel
COPIED, TURNED = 0.5, 2.0  # cycles for a number copied to a panel, from neighbours or not


class MatMulPanelKernel(Kernel):
    """Any sizes and strides; float and half storage, sums in float."""

    name = "matmul_panel"
    far = True
    params = (
        VW,
        Param("TM", tuple(range(1, 29)), 1, "rows of a tile"),
        Param("TN", (1, 2), 1, "column vectors of a tile"),
        Param("SWAP", (0, 1), 0, "1: computes the transposed product"),
        Param("PA", (0, 1), 1, "1: rows are copied to panels"),
        Param("PB", (0, 1), 1, "1: columns are copied to panels"),
    )

    def matches(self, step: Step) -> bool:
        """A product of floats that a device can store, and elementwise work on it."""
        return rooted(step, MatMul)

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Enough work for panels to pay, and tiles that stay in registers."""
        p = _product(step, config)
        registers = 32 if device.vector_width == 16 else 16
        tile = config["TM"] * config["TN"] + config["TN"]
        legal = config["PA"] >= _needs_rows(p, config) and config["PB"] >= _needs_columns(p, config)
        return device.kind == "cpu" and min(p.m.size, p.n.size) > 0 and tile <= registers and legal

    def pays(self, step: Step, device: DeviceInfo) -> bool:
        """Whether there is work for a launch or two more."""
        p = product_of(step)
        work = p.count * p.m.size * p.n.size * p.k.size
        return work >= WORTH_PANELS and min(p.m.size, p.n.size) >= LEAST_SIDE

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """The tile, the side for the lanes and the copies that waste the least time."""
        width = device.vector_width
        choices = [
            {"VW": width, "TM": rows, "TN": vectors, "SWAP": swap, "PA": pa, "PB": pb}
            for swap in (0, 1)
            for rows, vectors in _tiles(_product(step, {"SWAP": swap}), width)
            for pa in (0, 1)
            for pb in (0, 1)
        ]
        return min(choices, key=lambda c: _cost(_product(step, c), c))

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """The product, behind a launch for each operand that goes to panels."""
        p, width = _product(step, config), config["TN"] * config["VW"]
        (a, b, _), tm = p.views, config["TM"]
        launches, scratch = [], []
        packed_a, packed_b = bool(config["PA"]), bool(config["PB"])
        for packs, side, axis, tile in (
            (packed_a, "a", p.m, tm),
            (packed_b, "b", p.n, width),
        ):
            if packs:
                shape = (p.count, ceil(axis.size / tile), p.k.size, _pitch(tile, config))
                panel = Value(TensorType(shape, float32), f"panel.{side}")
                launches.append(_copy(p, side, (axis, tile), whole(panel)))
                scratch.append(panel)
        views = iter(whole(v) for v in scratch)
        left, right = (next(views) if packs else v for packs, v in ((packed_a, a), (packed_b, b)))
        store = store_of(step, bool(config["SWAP"]), config["VW"])
        mt, nt = ceil(p.m.size / tm), ceil(p.n.size / width)
        mb, nb = _shares(p, mt, nt, tm)
        items = p.count * ceil(mt / mb) * ceil(nt / nb)
        macros = defines(
            TA=left.base.dtype.cl,
            TB=right.base.dtype.cl,
            TY=store.outs[0].base.dtype.cl,
            M=p.m.size,
            N=p.n.size,
            K=p.k.size,
            A_PACKED=int(packed_a),
            PITCH=_pitch(tm, config),
            B_PACKED=int(packed_b),
            A_BATCH=batch_offset(p.batch, "a"),
            A_M=f"({p.m.a})",
            A_K=f"({p.k.a})",
            B_BATCH=batch_offset(p.batch, "b"),
            B_K=f"({p.k.b})",
            Y_BATCH=batch_offset(p.batch, "y"),
            Y_M=f"({p.m.y})",
            Y_N=p.n.y if alone(step) else 1,  # an epilogue stores lanes wherever they belong
            INDEX=index_type(left, right, *store.outs, items=items),
            MB=mb,
            NB=nb,
            **{key: config[key] for key in ("VW", "TM", "TN")},
        )
        source = KernelSource(template("matmul_panel"), macros + store.macros)
        launches.append(Launch(source, (left, right, *store.outs), *launch_size(items, 1)))
        return Rendered(tuple(launches), tuple(scratch))


def _product(step: Step, config: Config) -> Product:
    product = product_of(step)
    return product.swapped if config["SWAP"] else product


def _shares(p: Product, mt: int, nt: int, tm: int) -> tuple[int, int]:
    """Tiles of an item: rows that stay in a cache, and enough items for all cores."""
    rows = max(1, CACHED_NBYTES // max(1, tm * p.k.size * 4))
    least = ceil(ITEMS / p.count)
    mb = ceil(mt / min(mt, max(least, _even(ceil(mt / rows)))))
    return mb, ceil(nt / min(nt, ceil(least / ceil(mt / mb))))


def _even(n: int) -> int:
    """So many or one more: cores come in pairs."""
    return n + n % 2


def _tiles(p: Product, width: int) -> list[tuple[int, int]]:
    """Rows and vectors that nearly fill the registers, the rows cut into equal pieces."""
    most = {1: 28, 2: 14} if width == 16 else {1: 12, 2: 6}
    return [(even_tile(p.m.size, rows), vectors) for vectors, rows in most.items()]


def _cost(p: Product, config: Config) -> float:
    """Cycles of a product, roughly: arithmetic with what is wasted, scattered stores, copies."""
    tm, tn, width = config["TM"], config["TN"], config["VW"]
    if config["PA"] < _needs_rows(p, config) or config["PB"] < _needs_columns(p, config):
        return inf
    rows, columns = ceil(p.m.size / tm), ceil(p.n.size / (tn * width))
    per_k = (
        max(tm * tn, 8 * tn, 1.5 * tm) / 2
    )  # two sums or loads a cycle; eight hide their latency
    if not config["PA"] and p.k.a != 1 and columns > 1:
        per_k *= FAR
    if not config["PB"] and rows > 2:
        per_k *= FAR
    stored = 1 if p.n.y == 1 else width
    copied = config["PA"] * p.m.size * (COPIED if p.m.a == 1 else TURNED)
    copied += config["PB"] * p.n.size * (COPIED if p.n.b == 1 else TURNED)
    return rows * columns * (p.k.size * per_k + tm * tn * stored) + copied * p.k.size


def _needs_rows(p: Product, config: Config) -> bool:
    """Whether a must be copied: fewer rows than a tile."""
    return p.m.size < config["TM"] or p.views[0].base.dtype is not float32


def _needs_columns(p: Product, config: Config) -> bool:
    """Whether b must be copied: lanes that are no neighbours, or fewer than a tile."""
    few = p.n.size < config["TN"] * config["VW"]
    return few or not p.n.unit("b") or p.views[1].base.dtype is not float32


def _pitch(tile: int, config: Config) -> int:
    """Numbers of a panel's column, in whole vectors."""
    return ceil(tile / config["VW"]) * config["VW"]


def _copy(p: Product, side: str, cut: tuple[Axis, int], panel: View) -> Launch:
    """The launch that brings an operand into panels of so many rows of an axis."""
    axis, tile = cut
    source, pitch = p.views["ab".index(side)], panel.shape[-1]
    items = p.count * ceil(axis.size / tile) * ceil(p.k.size / PART)
    macros = defines(
        TX=source.base.dtype.cl,
        X=axis.size,
        K=p.k.size,
        TILE=tile,
        PITCH=pitch,
        VW=power_below(pitch),
        PART=PART,
        BATCH=batch_offset(p.batch, side),
        S_X=f"({getattr(axis, side)})",
        S_K=f"({getattr(p.k, side)})",
        INDEX=index_type(source, panel, items=items),
    )
    return Launch(KernelSource(template("panels"), macros), (source, panel), *launch_size(items, 1))
