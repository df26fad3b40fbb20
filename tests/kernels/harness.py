"""Runs one step of one kernel family on an OpenCL device, with canaries around every buffer.

Outputs and scratch start as NaN (or 0xAB bytes), so an element that nobody wrote is seen.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.helpers.tolerance import assert_close

from pocketgrad.base.dtypes import Array, dtype_of, float16, float32
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Node, Sample, TensorType, Value
from pocketgrad.kernels.spec import Config, DeviceInfo, Kernel, Launch, Rendered, template
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View, whole

if TYPE_CHECKING:
    import pyopencl

CANARY, POISON = 0x5A, 0x2B
MANY = 50_000  # settings of a family
FRONT, BEHIND = 256, 256  # bytes; the front keeps the alignment a device promises for a buffer


@dataclass(frozen=True, eq=False)
class Machine:
    """An opened device. ``guarded``: put canaries around; without, buffers are exactly as large as
    their value, which is what a simulator that checks bounds wants."""

    info: DeviceInfo
    context: pyopencl.Context
    queue: pyopencl.CommandQueue
    guarded: bool = True


def opened(device: pyopencl.Device, guarded: bool = True) -> Machine:
    """A machine around a pyopencl device."""
    import pyopencl as cl

    context = cl.Context([device])
    info = DeviceInfo(
        name=device.name,
        vendor=device.vendor,
        kind="gpu" if device.type & cl.device_type.GPU else "cpu",
        compute_units=device.max_compute_units,
        max_work_group=device.max_work_group_size,
        local_mem_nbytes=device.local_mem_size,
        base_align_nbytes=device.mem_base_addr_align // 8,
        max_alloc_nbytes=device.max_mem_alloc_size,
        vector_width=max(1, device.native_vector_width_float),
    )
    return Machine(info, context, cl.CommandQueue(context), guarded)


@cache
def machine(selector: str) -> Machine:
    """The machine a selector of ``open_backend`` means."""
    from pocketgrad.backends.platforms import find, open_device

    return opened(open_device(find(selector)))


def step_of(sample: Sample, unread: Sequence[int] = (), **views: View) -> Step:
    """The step that computes a sample; outputs whose index is in ``unread`` are not stored."""
    with Builder() as builder:
        inputs = tuple(builder.input(t, f"x{i}") for i, t in enumerate(sample.ins))
        outputs = builder.add(sample.op, *inputs)
    node = Node(sample.op, inputs, outputs)
    reads = {v: views.get(v.name) or whole(v) for v in inputs}
    writes = {v: whole(v) for i, v in enumerate(outputs) if i not in unread}
    return Step((node,), reads, writes)


def drawn(sample: Sample, seed: int = 0) -> list[Array]:
    """Inputs for a sample, in its range."""
    rng = np.random.default_rng(seed)
    return [_draw(rng, sample, t) for t in sample.ins]


def _draw(rng: np.random.Generator, sample: Sample, type: TensorType) -> Array:
    if type.dtype.is_float:
        return rng.uniform(sample.low, sample.high, type.shape).astype(type.dtype.numpy)
    low, high = sample.ints
    return rng.integers(low, max(low + 1, high), type.shape).astype(type.dtype.numpy)


def halved(sample: Sample) -> Sample:
    """The same with float16 instead of float32."""
    ins = tuple(replace(t, dtype=float16) if t.dtype is float32 else t for t in sample.ins)
    return replace(sample, ins=ins)


def check_sample(
    on: Machine, kernel: Kernel, sample: Sample, terms: int = 1, extra: int = 0
) -> None:
    """A family computes what the op means, in its defaults and ``extra`` other configurations."""
    feeds = drawn(sample)
    check_step(on, kernel, step_of(sample), feeds, sample.op.ref(*feeds), terms, extra)


def check_step(
    on: Machine,
    kernel: Kernel,
    step: Step,
    feeds: Sequence[Array],
    expected: Sequence[Array],
    terms: int = 1,
    extra: int = 0,
) -> None:
    """The same for a step of one's own; ``expected`` has what the step stores."""
    assert kernel.matches(step), f"{kernel.name} refuses {step.name}"
    for config in configurations(kernel, step, on.info, extra):
        rendered = kernel.render(step, config, on.info)
        for found, wanted in zip(compute(on, step, rendered, feeds), expected, strict=True):
            what = f"{step.nodes[-1].op} of {[f.shape for f in feeds]} with {dict(config)}"
            assert_close(found, wanted, dtype_of(wanted), terms, what)


def configurations(kernel: Kernel, step: Step, info: DeviceInfo, extra: int) -> list[Config]:
    """The device's own, and with ``extra`` the defaults and so many spread over all legal ones."""
    found = [dict(kernel.defaults(step, info))]
    if extra:
        names = [p.name for p in kernel.params]
        every = [dict(zip(names, values, strict=True)) for values in _settings(kernel)]
        legal = [config for config in every if kernel.fits(step, config, info)]
        spread = [legal[len(legal) * (2 * i + 1) // (2 * extra)] for i in range(extra)]
        found += [{p.name: p.default for p in kernel.params}, *spread]
    for config in found[:2]:
        assert kernel.fits(step, config, info), f"{kernel.name}: {config} is no legal default"
    return [config for i, config in enumerate(found) if config not in found[:i]]


def _settings(kernel: Kernel) -> Iterable[tuple[int, ...]]:
    """All values of the parameters, or some from everywhere where they are very many."""
    values = [p.values for p in kernel.params]
    if prod(map(len, values)) <= MANY:
        return itertools.product(*values)
    rng = np.random.default_rng(0)
    return [tuple(int(rng.choice(v)) for v in values) for _ in range(MANY // 50)]


def compute(on: Machine, step: Step, rendered: Rendered, feeds: Sequence[Array]) -> list[Array]:
    """Run the launches; what the stored outputs are then, in order."""
    import pyopencl as cl

    given: dict[Value, list[tuple[View, Array]]] = {}
    for view, feed in zip(step.reads.values(), feeds, strict=True):
        given.setdefault(view.base, []).append((view, feed))
    written = [view.base for view in step.writes.values()]
    bases = dict.fromkeys((*given, *written, *rendered.scratch))
    host = {v: laid_out(v, given.get(v, []), on.guarded) for v in bases}
    buffers = {
        v: cl.Buffer(on.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=h)
        for v, h in host.items()
    }
    front = FRONT if on.guarded else 0
    for launch in rendered.launches:
        args: list[Any] = []
        for view in launch.args:
            args += [buffers[view.base], np.uint64(view.offset + front // view.base.dtype.nbytes)]
        kernel_of(on, launch)(on.queue, launch.global_size, launch.local_size, *args)
    on.queue.finish()
    for v, buffer in buffers.items():
        back = np.empty_like(host[v])
        cl.enqueue_copy(on.queue, back, buffer)
        if on.guarded:
            intact = back[:FRONT], back[FRONT + v.type.nbytes :]
            assert all((edge == CANARY).all() for edge in intact), f"wrote outside {v!r}"
        if v in given and v not in written:
            assert (back == host[v]).all(), f"wrote into its input {v!r}"
        views = [w for w in step.writes.values() if w.base is v]
        if views and not any(w.packed and prod(w.shape) == v.type.size for w in views):
            kept = _beside(v, views, front)
            assert (back[kept] == host[v][kept]).all(), f"wrote beside its part of {v!r}"
        host[v] = back
    return [seen(host[v.base], v, front) for v in step.writes.values()]


def laid_out(value: Value, given: list[tuple[View, Array]], guarded: bool) -> Array:
    """The bytes of a base value: its numbers where views put them, else poison."""
    front, behind = (FRONT, BEHIND) if guarded else (0, 0)
    # No buffer is empty: OpenCL has none.
    flat = np.full(max(1, front + value.type.nbytes + behind), CANARY, np.uint8)
    body = flat[front : front + value.type.nbytes].view(value.dtype.numpy)
    body[:] = np.nan if value.dtype.is_float else POISON
    for view, array in given:
        _strided(body, view)[...] = array
    return flat


def seen(flat: Array, view: View, front: int) -> Array:
    """The array that a view shows of a base value's bytes."""
    body = flat[front : front + view.base.type.nbytes].view(view.base.dtype.numpy)
    return _strided(body, view).copy()


def _beside(value: Value, views: Sequence[View], front: int) -> Array:
    """Which bytes of a base value belong to none of the views of it."""
    kept = np.ones(value.type.size, np.bool_)
    for view in views:
        _strided(kept, view)[...] = False
    return front + np.flatnonzero(np.repeat(kept, value.dtype.nbytes))


def _strided(body: Array, view: View) -> Array:
    if 0 in view.shape:
        return np.empty(view.shape, body.dtype)
    steps = tuple(s * body.itemsize for s in view.strides)
    return np.lib.stride_tricks.as_strided(body[view.offset :], view.shape, steps)


_built: dict[Any, Any] = {}


def kernel_of(on: Machine, launch: Launch) -> Any:
    """The built kernel; ENTRY is ``entry``."""
    import pyopencl as cl

    key = on, launch.source
    if key not in _built:
        macros = "".join(f"#define {k} {v}\n" for k, v in launch.source.defines)
        names = "#define ENTRY entry\n#define ENTRY_NAME entry\n"
        text = f"{template('common')}\n{names}{macros}{launch.source.text}"
        with warnings.catch_warnings():  # Intel's compiler always tells what it vectorised
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program = cl.Program(on.context, text).build(["-cl-std=CL1.2"])
        log = program.get_build_info(on.queue.device, cl.program_build_info.LOG)
        assert "warning:" not in log, log
        _built[key] = cl.Kernel(program, "entry")
    return _built[key]
