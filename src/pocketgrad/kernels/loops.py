"""Fused elementwise work and reductions as one generated loop nest.

    item = a block of outer positions (rows)        one work-item, alone in its group on CPUs
      for each row:
        outer values                                 once per row
        pass 0 over the row, VW lanes at a time      reductions and row values of level 0
        pass 1 …                                     what needs the results of pass 0

Without reductions the row is the longest unit-stride loop, cut into chunks. With them, lanes lie
along the row, or along the last outer loop where that is the contiguous one (rows side by side).
A ragged end is done by a scalar copy of the body. Few long rows are summed in parts, which a second
launch folds. No float atomics: the order of every sum is fixed.
"""

from __future__ import annotations

from pocketgrad.base.dtypes import float64, int64
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.kernels.emit import Body, Cut
from pocketgrad.kernels.nest import Nest, nest_of
from pocketgrad.kernels.spec import (
    Config,
    DeviceInfo,
    Kernel,
    KernelSource,
    Launch,
    Param,
    Rendered,
    defines,
)
from pocketgrad.kernels.tiling import index_type
from pocketgrad.plan.domain import Domain, analyse, divisible, loopable
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole

MIN_ITEMS = 8  # two work-groups can land on one core; eight even it out
GPU_ITEMS = 256  # work-items per compute unit that hide a GPU's memory latency
MIN_SPLIT = 16_384  # elements below which a second launch costs more than parallel parts save


class Loops(Kernel):
    """Any step of pointwise nodes, reductions over one row, and the sources they use."""

    name = "loops"
    far = True
    params = (
        Param("VW", (1, 2, 4, 8, 16), 4, "floats per register"),
        Param("WORK", (1, 256, 1024, 4096, 16384), 4096, "elements per work-item, at least"),
        Param("WGS", (1, 32, 64, 128, 256), 1, "work-items per work-group"),
    )

    def matches(self, step: Step) -> bool:
        values = [v for n in step.nodes for v in (*n.inputs, *n.outputs)]
        fine = all(loopable(n) for n in step.nodes) and not any(v.dtype is float64 for v in values)
        return fine and analyse(step.nodes) is not None

    def defaults(self, step: Step, device: DeviceInfo) -> Config:
        if device.kind == "gpu":
            return {"VW": 1, "WORK": 1, "WGS": 64}
        return {"VW": device.vector_width, "WORK": 4096, "WGS": 1}

    def render(self, step: Step, config: Config, device: DeviceInfo) -> Rendered:
        domain = analyse(step.nodes)
        assert domain is not None
        nest = nest_of(step, domain)
        width = _width(step, nest, config["VW"])
        cut = _cut(step, domain, nest, width, config["WORK"], device)
        body = Body(step, domain, nest, width, cut)
        args = (*step.reads.values(), *step.writes.values())
        items = -(-cut.rows // cut.block) * cut.chunks
        group = config["WGS"]
        if not body.partial:
            return Rendered((_launch(body.text(), args, items, group),))
        scratch = tuple(
            Value(TensorType((cut.chunks * nest.rows,), n.inputs[0].dtype), "partial")
            for n in body.folds
        )
        args += tuple(whole(v) for v in scratch)
        first = _launch(body.text(), args, items, group)
        return Rendered((first, _launch(body.finish_text(), args, nest.rows, group)), scratch)


def _launch(text: str, args: tuple[View, ...], items: int, group: int) -> Launch:
    source = KernelSource(text, defines(INDEX=index_type(*args, items=items)))
    return Launch(source, args, (-(-items // group) * group,), (group,))


def _cut(step: Step, domain: Domain, nest: Nest, width: int, work: int, device: DeviceInfo) -> Cut:
    """Enough items to keep the device busy, each long enough to be worth its launch."""
    rows = nest.rows
    if nest.vector_outer:
        size = nest.outer[-1].size
        rows = rows // size * (size // width + size % width)
    wanted = MIN_ITEMS if device.kind == "cpu" else GPU_ITEMS * device.compute_units
    total = nest.rows * nest.row_size
    if divisible(domain, step.nodes, step.writes) and rows < wanted and total >= MIN_SPLIT:
        parts = min(nest.inner[0].size, -(-2 * wanted // rows))
        chunk = -(-nest.inner[0].size // parts)
        if len(nest.inner) == 1 and not nest.vector_outer:
            chunk = -(-chunk // width) * width
        return Cut(rows, 1, chunk, -(-nest.inner[0].size // chunk))
    chunk = _chunk(nest, domain, width, work)
    chunks = -(-nest.row_size // chunk) if chunk else 1
    per_row = (chunk or nest.row_size) * (width if nest.vector_outer else 1)
    block = max(1, min(work // max(per_row, 1), rows * chunks // MIN_ITEMS))
    return Cut(rows, 1 if chunks > 1 else block, chunk, chunks)


def _width(step: Step, nest: Nest, wanted: int) -> int:
    """Lanes: none without a lane loop or where long integers are involved, else what fits it."""
    values = [v for n in step.nodes for v in (*n.inputs, *n.outputs)]
    if nest.lane is None or any(v.dtype is int64 for v in values):
        return 1
    size = nest.loops[nest.lane].size
    while wanted > size:
        wanted //= 2
    return max(wanted, 1)


def _chunk(nest: Nest, domain: Domain, width: int, work: int) -> int:
    """Elements of the row per item; 0 where a row must stay whole because it is reduced."""
    if domain.row or not nest.inner:
        return 0
    size = nest.inner[-1].size
    wanted = max(work, width)
    if nest.rows == 1 and work > 1:
        wanted = min(wanted, max(-(-size // MIN_ITEMS), 16 * width))
    chunk = -(-wanted // width) * width
    return min(size, chunk)
