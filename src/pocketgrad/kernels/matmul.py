"""The matrix product. Two templates: lanes along a column axis, or along the summed axis.

Which one is legal depends on the strides of the operands; whatever they are, one is. Where the
left operand has the neighbours that lanes need, the product is computed as (bᵀaᵀ)ᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

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
    WORTH_A_LAUNCH,
    alone,
    even_tile,
    groups,
    index_type,
    launch_size,
    parts_for,
    power_below,
    result_of,
    root,
    rooted,
    with_parts,
)
from pocketgrad.ops.linalg import MatMul
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View


@dataclass(frozen=True)
class Axis:
    """One loop of the product and the stride of a, b and y along it."""

    size: int
    a: int
    b: int
    y: int

    def unit(self, side: str) -> bool:
        """Whether neighbours along it are neighbours in memory (or there is only one)."""
        return self.size == 1 or getattr(self, side) == 1


@dataclass(frozen=True)
class Product:
    """y[g, m, n] = sum over k of a[g, m, k]·b[g, k, n], wherever the elements lie."""

    batch: tuple[Axis, ...]
    m: Axis
    n: Axis
    k: Axis
    views: tuple[View, View, View]

    @property
    def count(self) -> int:
        """How many products."""
        return prod(axis.size for axis in self.batch)

    @property
    def swapped(self) -> Product:
        """The same as yᵀ = bᵀ·aᵀ."""
        a, b, y = self.views

        def swap(axis: Axis) -> Axis:
            return Axis(axis.size, axis.b, axis.a, axis.y)

        batch = tuple(swap(axis) for axis in self.batch)
        return Product(batch, swap(self.n), swap(self.m), swap(self.k), (b, a, y))


@dataclass(frozen=True)
class Scheme:
    """A product, the template that computes it, and the most lanes that it may use."""

    product: Product
    template: str
    lanes: int


def product_of(step: Step) -> Product:
    """The product that a step's first node with inputs asks for."""
    node = root(step)
    op = node.op
    assert isinstance(op, MatMul)
    a, b = (step.reads[v] for v in node.inputs)
    y = result_of(step)
    am, ak = (-1, -2) if op.transpose_a else (-2, -1)
    bk, bn = (-1, -2) if op.transpose_b else (-2, -1)
    lead = zip(y.shape[:-2], a.strides, b.strides, y.strides, strict=False)
    return Product(
        _merged([Axis(*sizes) for sizes in lead]),
        Axis(y.shape[-2], a.strides[am], 0, y.strides[-2]),
        Axis(y.shape[-1], 0, b.strides[bn], y.strides[-1]),
        Axis(a.shape[ak], a.strides[ak], b.strides[bk], 0),
        (a, b, y),
    )


def _merged(axes: list[Axis]) -> tuple[Axis, ...]:
    """Without axes of size 1, and neighbours that step through memory as one axis joined."""
    kept: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        last = kept[-1] if kept else None
        if last is not None and all(
            getattr(last, side) == axis.size * getattr(axis, side) for side in "aby"
        ):
            kept[-1] = Axis(last.size * axis.size, axis.a, axis.b, axis.y)
        else:
            kept.append(axis)
    return tuple(kept)


def scheme_of(product: Product, width: int) -> Scheme:
    """The legal way that fills the most lanes of a device with vectors of ``width``."""
    other = product.swapped
    found = [
        Scheme(product, "matmul", power_below(product.n.size) if product.n.unit("b") else 1),
        Scheme(other, "matmul", power_below(other.n.size) if other.n.unit("b") else 1),
    ]
    if product.k.unit("a") and product.k.unit("b") and product.k.size:
        found.insert(1, Scheme(product, "matmul_dot", power_below(product.k.size)))
    # Of equals one that stores vectors, then the first.
    return max(found, key=lambda s: (min(s.lanes, width), s.product.n.unit("y")))


class MatMulKernel(Kernel):
    """Any sizes and strides; float and half storage, sums in float."""

    name = "matmul"
    far = True
    params = (
        VW,
        Param("TM", tuple(range(1, 17)), 4, "rows of an item"),
        Param("TN", (1, 2, 3, 4, 8), 1, "column vectors of an item; with lanes along k, columns"),
        PARTS,
        WGS,
    )

    def matches(self, step: Step) -> bool:
        """A product of floats that a device can store, and elementwise work on it."""
        return rooted(step, MatMul)

    def fits(self, step: Step, config: Config, device: DeviceInfo) -> bool:
        """Vectors no longer than their axis, accumulators that stay in registers."""
        product = product_of(step)
        scheme = scheme_of(product, device.vector_width)
        tm, tn, parts = config["TM"], config["TN"], config["PARTS"]
        legal = config["VW"] <= max(1, scheme.lanes) and config["WGS"] <= device.max_work_group
        if scheme.template == "matmul_dot":
            legal = legal and tn != 3 and tn <= max(1, product.n.size)
            legal = legal and config["VW"] <= ceil(product.k.size / parts)
        if parts > 1:
            legal = legal and _divisible(step, product) and parts <= product.k.size
        return legal and tm * tn <= 32

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        """Tiles that keep the arithmetic units busy, cut smaller where there would be too few."""
        product = product_of(step)
        cpu = device.kind == "cpu"
        width = device.vector_width if cpu else min(4, device.vector_width)
        scheme = scheme_of(product, device.vector_width)
        m, n, k = (axis.size for axis in (scheme.product.m, scheme.product.n, scheme.product.k))
        vw = min(width, max(1, scheme.lanes))
        if scheme.template == "matmul_dot":
            tm, tn = even_tile(m, 4), min(power_below(n), 4)
            columns = n
        else:
            columns = ceil(n / vw)
            tn = min(2, max(1, columns)) if cpu else 1
            tm = even_tile(m, (12 if tn == 1 else 8) if cpu else 4)
        work = product.count * m * n * k
        enough = groups(device, work)

        def items() -> int:
            return product.count * ceil(m / tm) * ceil(columns / tn)

        parts = 1
        if work >= WORTH_A_LAUNCH and _divisible(step, product):
            parts = parts_for(items(), enough, k // 256)
        while 0 < items() * parts < enough and (tm > 1 or tn > 1):
            if tm >= 2 * tn or tn == 1:
                tm = ceil(tm / 2)
            else:
                tn = tn // 2
        return {"VW": vw, "TM": tm, "TN": tn, "PARTS": parts, "WGS": 1 if cpu else 64}

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        """One launch; a second that adds the parts where k is split."""
        product = product_of(step)
        scheme = scheme_of(product, device.vector_width)
        p, parts = scheme.product, config["PARTS"]
        if 0 in (p.m.size, p.n.size, p.count):
            return Rendered(())
        dot = scheme.template == "matmul_dot"
        columns = p.n.size if dot else ceil(p.n.size / config["VW"])
        items = parts * p.count * ceil(p.m.size / config["TM"]) * ceil(columns / config["TN"])
        a, b, y = p.views
        store = store_of(step, p is not product, config["TN"] if dot else config["VW"])

        def launch(outs: tuple[View, ...], y_batch: str, y_m: int, y_n: int) -> Launch:
            # Without anything to add there is nothing to read, and perhaps no memory to point at.
            operands = (a, b) if p.k.size else (outs[0], outs[0])
            macros = defines(
                TA=a.base.dtype.cl,
                TB=b.base.dtype.cl,
                TY=outs[0].base.dtype.cl,
                M=p.m.size,
                N=p.n.size,
                K=p.k.size,
                G=p.count,
                A_BATCH=batch_offset(p.batch, "a"),
                A_M=p.m.a,
                A_K=1 if dot else p.k.a,
                B_BATCH=batch_offset(p.batch, "b"),
                B_K=1 if dot else p.k.b,
                B_N=p.n.b if dot or config["VW"] == 1 else 1,
                Y_BATCH=y_batch,
                Y_M=y_m,
                Y_N=y_n,
                VW=config["VW"],
                TM=config["TM"],
                TN=config["TN"],
                PARTS=parts,
                WGS=config["WGS"],
                ROWS_FIRST=int(device.kind == "cpu"),
                INDEX=index_type(a, b, *outs, items=items),
            )
            source = KernelSource(template(scheme.template), macros + store.macros)
            return Launch(source, (*operands, *outs), *launch_size(items, config["WGS"]))

        if parts == 1:
            inner = p.n.y if alone(step) else 1  # an epilogue stores lanes wherever they belong
            return Rendered((launch(store.outs, batch_offset(p.batch, "y"), p.m.y, inner),))
        # Each part lies as the result does: [g, m, n] of the product as asked for.
        m, n = p.m.size, p.n.size
        strides = (1, m) if p is not product else (n, 1)
        place = f"((part * G + g) * (INDEX){m * n})"
        return with_parts(lambda out: launch((out,), place, *strides), y, config, device)


def _divisible(step: Step, product: Product) -> bool:
    """Whether the sum may be done in parts: nothing but the dense result is stored."""
    return alone(step) and product.views[2].dense


def store_of(step: Step, swapped: bool, width: int) -> Store:
    """What happens to results; the template's n is the product's m where it was swapped."""
    shape = result_of(step).shape
    numbers, inner = [], 1
    for size in reversed(shape[:-2]):
        numbers.append(f"(g) / {inner} % {size}")
        inner *= size
    last = ("n", "m") if swapped else ("m", "n")
    lane = len(shape) - (2 if swapped else 1)
    return storing(step, "g, m, n", [*reversed(numbers), *last], lane, (width, 1))


def batch_offset(axes: tuple[Axis, ...], side: str) -> str:
    """The offset of product number g, as an expression in C."""
    terms, inner = [], 1
    for place, axis in reversed(list(enumerate(axes))):
        number = "g" if inner == 1 else f"g / {inner}"
        number = number if place == 0 else f"{number} % {axis.size}"
        if getattr(axis, side):
            terms.append(f"({number}) * (INDEX){getattr(axis, side)}")
        inner *= axis.size
    return f"({' + '.join(terms) or '0'})"
