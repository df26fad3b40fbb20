"""What the families with register tiles share: parameters, tile sizes, launches, sums in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, prod

from pocketgrad.base.dtypes import float32
from pocketgrad.ir.core import Node, Op, TensorType, Value
from pocketgrad.kernels.spec import (
    Config,
    DeviceInfo,
    KernelSource,
    Launch,
    Param,
    Rendered,
    defines,
    template,
)
from pocketgrad.plan.domain import loopable
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole

VW = Param("VW", (1, 2, 4, 8, 16), 1, "lanes of a vector")
WGS = Param("WGS", (1, 16, 32, 64, 128, 256), 1, "items of a work-group; 1 suits CPUs")
PARTS = Param(
    "PARTS", (1, 2, 3, 4, 6, 8, 16, 32, 64), 1, "parts of the sum, added by a launch more"
)

# Fewer multiplications than this are over before a second processor has begun.
LONG_WORK = 100_000
# More take longer than a further launch does.
WORTH_A_LAUNCH = 1_000_000


def root(step: Step) -> Node:
    """The first node that computes something from values."""
    return next((node for node in step.nodes if node.inputs), step.nodes[0])


def rooted(step: Step, *ops: type[Op]) -> bool:
    """Whether the step is one such op, on floats that a device can store, and its epilogue."""
    node = root(step)
    stored = {v.dtype.register for v in (*step.reads, *step.writes)}
    return (
        isinstance(node.op, ops)
        and node.outputs[0].dtype.register == "float"
        and "double" not in stored
        and all(loopable(n) for n in step.nodes if n is not node)
    )


def alone(step: Step) -> bool:
    """Whether nothing but constants is there beside the root."""
    return sum(bool(n.inputs) for n in step.nodes) == 1


def result_of(step: Step) -> View:
    """Where the root's own output lies, or would if it were stored."""
    (out, *_) = root(step).outputs
    return step.writes.get(out) or whole(out)


def dense(step: Step, values: Iterable[Value]) -> bool:
    """Whether these lie in row-major order without gaps, where they are read or stored at all."""
    views = {**step.reads, **step.writes}
    return all(views[v].dense for v in values if v in views)


def power_below(n: int) -> int:
    """The largest of 1, 2, 4, 8 and 16 that is at most n (1 for n = 0)."""
    return max((w for w in VW.values if w <= n), default=1)


def even_tile(size: int, most: int) -> int:
    """A tile of at most ``most`` that cuts size into equal pieces, nearly."""
    return max(1, ceil(size / max(1, ceil(size / most))))


def groups(device: DeviceInfo, work: int) -> int:
    """How many items a launch should at least have, given its multiplications."""
    if device.kind == "gpu":
        return 256 * device.compute_units
    return max(8, 2 * device.compute_units) if work >= LONG_WORK else 1


def parts_for(items: int, enough: int, length: int) -> int:
    """In how many parts of a sum of this length to share the work of too few items."""
    wanted = min(ceil(enough / max(1, items)), length)
    return max((p for p in PARTS.values if p <= wanted), default=1)


def index_type(*views: View, items: int = 0) -> str:
    """The type that holds every element number, and every sum of two of them."""
    reach = max(abs(end) for view in views for end in view.span)
    return "int" if max(2 * reach, items) < 2**31 else "long"


def launch_size(items: int, group: int) -> tuple[tuple[int], tuple[int]]:
    """Global and local size; items past the end return at once."""
    return (ceil(items / group) * group,), (group,)


def with_parts(
    first: Callable[[View], Launch], y: View, config: Config, device: DeviceInfo
) -> Rendered:
    """``first`` writes PARTS sums that lie as the packed y one after the other; another launch
    adds them."""
    parts, size = config["PARTS"], prod(y.shape)
    scratch = Value(TensorType((parts, size), float32), "parts")
    partial = whole(scratch)
    width = power_below(min(size, device.vector_width))
    items = ceil(size / width)
    macros = defines(
        TY=y.base.dtype.cl, SIZE=size, PARTS=parts, VW=width,
        WGS=config["WGS"], INDEX=index_type(partial, y, items=items),
    )  # fmt: skip
    add = Launch(
        KernelSource(template("add_parts"), macros),
        (partial, y),
        *launch_size(items, config["WGS"]),
    )
    return Rendered((first(partial), add), (scratch,))
