"""Whether a device computes what the kernels say: small samples of every family against NumPy.

Run at the first use of a device with a driver and these kernels, and by `pocketgrad doctor`. It
finds drivers that compile wrongly; it is no measure of precision.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np

from pocketgrad import kernels
from pocketgrad.backends.api import Backend, Lowered
from pocketgrad.backends.quarantine import Verdict, quarantine
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import PocketgradError
from pocketgrad.engine.compile import plan_graph
from pocketgrad.engine.executable import Executable
from pocketgrad.ir.build import Builder, emit_all
from pocketgrad.ir.core import Graph, Op, Sample, TensorType, Value
from pocketgrad.ops.arithmetic import Cast, Mod
from pocketgrad.ops.average import AvgPool2d, AvgPool2dGrad
from pocketgrad.ops.compare import Where
from pocketgrad.ops.conv import Conv, Conv2d, Conv2dGradInput, Conv2dGradWeight
from pocketgrad.ops.embed import Gather, GatherGrad, Take, TakeGrad
from pocketgrad.ops.linalg import MatMul
from pocketgrad.ops.move import Transpose, transpose
from pocketgrad.ops.pool import MaxPool2d, MaxPool2dGrad
from pocketgrad.ops.reduce import Sum
from pocketgrad.ops.resize import Resize1d, Resize1dGrad
from pocketgrad.ops.source import Uniform
from pocketgrad.ops.transcendental import Erf, Exp, Pow
from pocketgrad.plan.plan import Plan

LOG = logging.getLogger("pocketgrad")

# What is checked of each family: the heaviest sample of each op; at the first use, when somebody
# waits, a light one of the first op.
CHECKED: Mapping[str, tuple[type[Op], ...]] = {
    "matmul": (MatMul,),
    "matmul_panel": (MatMul,),
    "winograd": (Conv2d,),
    "winograd_grad_input": (Conv2dGradInput,),
    "winograd_grad_weight": (Conv2dGradWeight,),
    "conv_last": (Conv2d, Conv2dGradInput),
    "conv": (Conv2d, Conv2dGradInput),
    "conv_grad_weight": (Conv2dGradWeight,),
    "depthwise": (Conv2d, Conv2dGradInput),
    "depthwise_grad": (Conv2dGradWeight,),
    "conv_last_grad": (Conv2dGradWeight,),
    "pool": (MaxPool2d, AvgPool2d),
    "pool_grad": (MaxPool2dGrad, AvgPool2dGrad),
    "pool_last": (MaxPool2d, AvgPool2d),
    "pool_last_grad": (MaxPool2dGrad, AvgPool2dGrad),
    "take": (Take,),
    "take_grad": (TakeGrad,),
    "gather": (Gather,),
    "gather_grad": (GatherGrad,),
    "resize": (Resize1d, Resize1dGrad),
    "loops": (Sum, Exp, Erf, Pow, Where, Cast, Mod, Uniform),
}
DEPTHWISE = ("depthwise", "depthwise_grad")  # families for groups of one channel
CHANNELS_LAST = (  # families for images that lie so
    "winograd", "winograd_grad_input", "winograd_grad_weight", "conv_last", "conv_last_grad",
    *DEPTHWISE, "pool_last", "pool_last_grad",
)  # fmt: skip
# Those of them that no other replaces: where one is wrong, images lie row-major.
NEEDED_LAST = frozenset({"conv_last", "conv_last_grad", "pool_last", "pool_last_grad"})
# Families that pay on larger problems than the samples of their ops.
LARGER = ("matmul_panel", "winograd", "winograd_grad_input", "winograd_grad_weight")
# Wrong kernels are wrong by the size of their numbers; rounding is a thousand times below this.
TOLERANCE = 1e-3
_PIXELS, _PLANES = (0, 2, 3, 1), (0, 3, 1, 2)  # [N, C, H, W] to [N, H, W, C] and back
LIGHT = 300  # operations and elements of a sample worth checking: several vectors and a ragged end


@dataclass(frozen=True)
class Case:
    """A sample in the graph of the check: what goes in and comes out, and the family to compute it.

    Images of families in CHANNELS_LAST go in and come out as [N, H, W, C].
    """

    family: str
    sample: Sample
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @property
    def last(self) -> bool:
        """Whether its images lie channels-last."""
        return self.family in CHANNELS_LAST

    def drawn(self, rng: np.random.Generator) -> list[Array]:
        """Operands of the op."""
        return [_drawn(t, self.sample, rng) for t in self.sample.ins]


def self_check(
    backend: Backend, families: Collection[str] | None = None, thorough: bool = True
) -> list[Verdict]:
    """A verdict on each family (all by default). Mostly the building of kernels takes time."""
    samples = {
        k.name: _samples(k.name, thorough)
        for k in kernels.ALL
        if families is None or k.name in families
    }
    try:
        return _judge(backend, samples)
    except PocketgradError:  # something does not build: find out what
        return [v for family, few in samples.items() for v in _judge_alone(backend, family, few)]


def checked(backend: Backend) -> Backend:
    """The backend, after the check if this device, driver and kernels never had one; kernel
    families that failed are not used."""
    from pocketgrad.backends.opencl import OpenCLBackend

    if not isinstance(backend, OpenCLBackend):
        return backend
    store, mark = quarantine(), fingerprint()
    known = store.judged(backend.report)
    fresh = [k.name for k in kernels.ALL if k.name not in known or known[k.name].kernels != mark]
    if fresh:
        LOG.info("first use of %s: checking %d kernel families", backend.name, len(fresh))
        backend.excluded = {}
        verdicts = self_check(backend, fresh, thorough=False)
        known = {**known, **{v.family: v for v in verdicts}}
        store.record(backend.report, verdicts)
    backend.excluded = {v.family: v for v in known.values() if not v.ok}
    if wrong := sorted(backend.excluded.keys() & NEEDED_LAST):
        LOG.warning(
            "images lie row-major on %s, which is slower: kernel family '%s' is wrong in its "
            "self-check. Update the driver, then run 'pocketgrad doctor'", backend.name, wrong[0],
        )  # fmt: skip
        backend.info = replace(backend.info, images_last=False)
    return backend


@cache
def fingerprint() -> str:
    """Of all kernel sources: verdicts on others say nothing about these."""
    digest = hashlib.sha256()
    folder = files("pocketgrad.kernels")
    sources = [p for part in (folder, folder / "cl") for p in part.iterdir()]
    for path in sorted(sources, key=lambda p: p.name):
        if path.name.endswith((".py", ".cl")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _judge_alone(backend: Backend, family: str, samples: Sequence[Sample]) -> list[Verdict]:
    try:
        return _judge(backend, {family: samples})
    except PocketgradError as error:
        return [Verdict(family, ok=False, reason=str(error), kernels=fingerprint())]


def _judge(backend: Backend, samples: Mapping[str, Sequence[Sample]]) -> list[Verdict]:
    cases, graph = _cases(samples)
    rng = np.random.default_rng(0)
    drawn = [case.drawn(rng) for case in cases]
    plan, lowered = _planned(graph, backend)
    executable = Executable(plan, lowered, backend, poison=True)
    executable.run(
        {
            v.name: np.ascontiguousarray(a.transpose(_PIXELS)) if case.last else a
            for case, arrays in zip(cases, drawn, strict=True)
            for v, a in zip(case.inputs, arrays, strict=True)
        }
    )
    found: dict[str, str] = {}
    for case, arrays in zip(cases, drawn, strict=True):
        found.setdefault(case.family, "")
        for value, array in zip(case.outputs, case.sample.op.ref(*arrays), strict=True):
            got = executable.read(value.name)
            got = got.transpose(_PLANES) if case.last else got
            found[case.family] = found[case.family] or _difference(got, array, case.sample)
    mark = fingerprint()
    return [Verdict(family, not why, why, mark) for family, why in found.items()]


def _planned(graph: Graph, backend: Backend) -> tuple[Plan, list[Lowered]]:
    """The plan of the check: what is read channels-last is known to lie so, and written so."""
    turned = {v for n in graph.nodes if n.op == Transpose(_PLANES) for v in n.outputs}

    def layout(graph: Graph, width: int) -> frozenset[Value]:
        made = (n.outputs for n in graph.nodes if turned.intersection(n.inputs))
        return frozenset(turned).union(*made)

    return plan_graph(graph, backend, layout=layout)


def _cases(samples: Mapping[str, Sequence[Sample]]) -> tuple[list[Case], Graph]:
    """All samples in one graph: few programs are built, side by side."""
    cases: list[Case] = []
    with Builder() as builder:
        for family, sample in ((f, s) for f, few in samples.items() for s in few):
            name = f"{family}.{len(cases)}"
            if family in CHANNELS_LAST:
                inputs, outputs = _turned(builder, sample, name)
            else:
                inputs = tuple(builder.input(t, f"{name}.{i}") for i, t in enumerate(sample.ins))
                outputs = emit_all(sample.op, *inputs)
            cases.append(Case(family, sample, inputs, outputs))
        return cases, builder.graph([v for case in cases for v in case.outputs])


def _turned(
    builder: Builder, sample: Sample, name: str
) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """An op on images that come and go as [N, H, W, C]; as views, so that no other kernel works."""
    inputs = tuple(
        builder.input(TensorType(tuple(t.shape[a] for a in _PIXELS), t.dtype), f"{name}.{i}")
        for i, t in enumerate(sample.ins)
    )
    made = emit_all(sample.op, *(transpose(v, _PLANES) for v in inputs))
    return inputs, tuple(transpose(v, _PIXELS) for v in made)


def _larger(op: type[Op]) -> Sample:
    """As little work as such a family pays for: images of 64 channels, or two matrices."""
    if op is MatMul:
        return Sample(MatMul(), (TensorType((129, 603)), TensorType((603, 131))))
    plain = Conv2d((1, 1), (1, 1, 1, 1), (1, 1), 1)
    image, weights = TensorType((4, 64, 15, 15)), TensorType((64, 64, 3, 3))
    if op is Conv2d:
        return Sample(plain, (image, weights))
    if op is Conv2dGradWeight:
        return Sample(Conv2dGradWeight(**plain.attributes(), rs=(3, 3)), (image, image))
    return Sample(Conv2dGradInput(**plain.attributes(), hw=(15, 15)), (image, weights))


def _samples(family: str, thorough: bool) -> list[Sample]:
    if family in LARGER:
        return [_larger(op) for op in CHECKED[family]]
    possible = [_possible(family, op) for op in CHECKED[family]]
    if thorough:
        return [max(samples, key=_work) for samples in possible]
    ordered = sorted(possible[0], key=_work)
    return [next((s for s in ordered if _work(s) >= LIGHT), ordered[-1])]


def _possible(family: str, op: type[Op]) -> list[Sample]:
    """Samples of an op that a family is for."""
    if family not in DEPTHWISE:
        return list(op.samples())
    return [s for s in op.samples() if _is_depthwise(s)]


def _is_depthwise(sample: Sample) -> bool:
    op = sample.op
    assert isinstance(op, Conv)
    weights = op.infer(*sample.ins)[0] if isinstance(op, Conv2dGradWeight) else sample.ins[1]
    return op.groups > 1 and weights.shape[1] == 1


def _work(sample: Sample) -> int:
    outs = sample.op.infer(*sample.ins)
    elements = sum(t.size for t in (*sample.ins, *outs))
    return elements and elements + sample.op.cost(sample.ins, outs).flops


def _drawn(type: TensorType, sample: Sample, rng: np.random.Generator) -> Array:
    if type.dtype.is_float:
        return rng.uniform(sample.low, sample.high, type.shape).astype(type.dtype.numpy)
    return rng.integers(*sample.ints, type.shape).astype(type.dtype.numpy)


def _difference(found: Array, expected: Array, sample: Sample) -> str:
    """What is wrong, or nothing."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    bound = TOLERANCE * scale if expected.dtype.kind == "f" else 0.0
    wrong = np.argwhere(~np.isclose(a, b, rtol=0.0, atol=bound, equal_nan=True))
    if not len(wrong):
        return ""
    at = tuple(int(i) for i in wrong[0])
    types = ", ".join(map(str, sample.ins))
    return (
        f"{sample.op.label()} of {types}: {found[at]} instead of {expected[at]} at {at}, "
        f"{len(wrong)} of {found.size} elements are wrong"
    )
