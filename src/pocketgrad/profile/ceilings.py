"""What a device can do at best: fused multiply-adds in registers, and a copy beyond its caches.

Measured through the backend like any launch, the best of several runs: a ceiling is not a mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pocketgrad.backends.api import Backend, Bound, Lowered
from pocketgrad.base.dtypes import float32
from pocketgrad.base.errors import PocketgradError
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.kernels.spec import KernelSource, Launch, Rendered, defines
from pocketgrad.plan.plan import Slot, Step
from pocketgrad.plan.views import whole
from pocketgrad.trace.clock import now_ns
from pocketgrad.trace.model import Absent
from pocketgrad.trace.profile import Ceiling

SECONDS = 0.15  # for each: clocks have settled and the best of many is seen
CHAINS = 12  # independent sums: more than the latency of a multiply-add times its throughput
ROUNDS = 4096
COPIED_NBYTES = 128 << 20  # far more than any last cache
ITEMS_PER_UNIT = 8
LEAST_RUNS = 3

# Each item keeps CHAINS vectors in registers. The result is written, so nothing can be left out.
_FMA = """
kernel void ENTRY(BUF(float, y))
{
    VEC(float, VW) a[CHAINS];
    const float x = 1.0f + 1e-7f * get_global_id(0);
    for (int c = 0; c < CHAINS; c++) a[c] = (VEC(float, VW))(x + c);
    const VEC(float, VW) m = (VEC(float, VW))(0.999f), b = (VEC(float, VW))(x);
    for (int r = 0; r < ROUNDS; r++) {
        _Pragma("unroll")
        for (int c = 0; c < CHAINS; c++) a[c] = fma(a[c], m, b);
    }
    for (int c = 1; c < CHAINS; c++) a[0] += a[c];
    CAT(vstore, VW)(a[0], get_global_id(0), AT(y));
}
"""
# Items of a CPU copy a long stretch each; those of a GPU neighbouring vectors.
_COPY = """
kernel void ENTRY(CBUF(float, x), BUF(float, y))
{
    const ulong part = COUNT / get_global_size(0);
    for (ulong i = 0; i < part; i++) {
        const ulong id = get_global_id(0);
        const ulong at = FAR ? id * part + i : i * get_global_size(0) + id;
        CAT(vstore, VW)(CAT(vload, VW)(at, AT(x)), at, AT(y));
    }
}
"""


@dataclass(frozen=True)
class _Trial:
    """A kernel with its memory and what one run of it does."""

    name: str
    unit: str
    how: str
    bound: Bound
    amount: int


def measure(backend: Backend) -> tuple[tuple[Ceiling, ...], tuple[Absent, ...]]:
    """Both ceilings, and why one is missing: the reference backend has no kernels to measure."""
    if backend.name in ("reference", "null"):
        reason = f"the {backend.name} backend runs no kernels"
        return (), (Absent("ceilings", reason),)
    found, absent = [], []
    for name, make in (("arithmetic", _fma), ("memory", _copy)):
        try:
            found.append(_best(backend, make(backend)))
        except PocketgradError as error:
            absent.append(Absent(f"{name} ceiling", str(error)))
    return tuple(found), tuple(absent)


def _best(backend: Backend, trial: _Trial) -> Ceiling:
    trial.bound.run()
    backend.finish()
    best, runs = float("inf"), 0
    until = now_ns() + round(SECONDS * 1e9)
    while runs < LEAST_RUNS or now_ns() < until:
        start = now_ns()
        trial.bound.run()
        backend.finish()
        best = min(best, now_ns() - start)
        runs += 1
    return Ceiling(
        trial.name, trial.amount * 1e9 / best, trial.unit, f"{trial.how}, best of {runs}"
    )


def _fma(backend: Backend) -> _Trial:
    width, items = _shape(backend)
    items *= 32  # short items cannot fill a GPU, and even out the cores of a CPU
    y = Value(TensorType((items * width,), float32), "y")
    source = KernelSource(_FMA, defines(VW=width, CHAINS=CHAINS, ROUNDS=ROUNDS))
    bound = _bound(backend, Launch(source, (whole(y),), (items,)))
    flops = 2 * items * width * CHAINS * ROUNDS
    return _Trial("arithmetic", "flop/s", "float32 multiply-adds in registers", bound, flops)


def _copy(backend: Backend) -> _Trial:
    width, items = _shape(backend)
    nbytes = min(COPIED_NBYTES, backend.info.max_alloc_nbytes)
    count = nbytes // 4 // width // items * items
    x, y = (Value(TensorType((count * width,), float32), name) for name in "xy")
    far = int(backend.info.kind == "cpu")
    source = KernelSource(_COPY, defines(VW=width, COUNT=count, FAR=far))
    bound = _bound(backend, Launch(source, (whole(x), whole(y)), (items,)))
    how = f"a copy of {count * width * 4 / 1e6:.0f} MB, read and written bytes"
    return _Trial("memory", "B/s", how, bound, 2 * count * width * 4)


def _shape(backend: Backend) -> tuple[int, int]:
    """Vector width and number of items that fill the device."""
    info = backend.info
    if info.kind == "cpu":
        return info.vector_width, info.compute_units * ITEMS_PER_UNIT
    return 4, info.compute_units * info.max_work_group * ITEMS_PER_UNIT


def _bound(backend: Backend, launch: Launch) -> Bound:
    """A launch with buffers of its own. The step says nothing: only its launch is run."""
    values = [view.base for view in launch.args]
    buffers: dict[str, Any] = {v.name: backend.alloc(v.type.nbytes) for v in values}
    for buffer in buffers.values():
        backend.fill(buffer, 0)
    slots = {v: Slot(v.name, 0, v.type.nbytes) for v in values}
    step = Step((), {}, {})
    return backend.bind([Lowered(step, "ceiling", Rendered((launch,)))], buffers, slots)
