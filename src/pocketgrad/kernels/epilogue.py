"""Elementwise work behind another kernel, done on its result registers before they are stored.

A template stores through FINISH(LW, g, m, n, v) or the like: LW results from one position on. Here
that macro is written for a step whose first node is the template's own and whose other nodes are
pointwise on its output: bias, activation, residual, masks for the backward pass.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass

from pocketgrad.ir.core import Node
from pocketgrad.kernels.emit import Body, Cut
from pocketgrad.kernels.expression import register
from pocketgrad.kernels.nest import Dim, Nest, counters_of, strides_by_dim
from pocketgrad.plan.domain import SOURCES, analyse
from pocketgrad.plan.plan import Step
from pocketgrad.plan.views import View


@dataclass(frozen=True)
class Epilogue:
    """The nodes behind a root, and what they read and write."""

    step: Step  # of those nodes alone; reads the root's output from registers
    root: Node

    @property
    def args(self) -> tuple[View, ...]:
        """Buffers beyond the template's own: operands, then results."""
        return (*self.step.reads.values(), *self.step.writes.values())

    @property
    def signature(self) -> str:
        """Their declarations."""
        values = (*self.step.reads, *self.step.writes)
        return ", ".join(f"SHARED_BUF({v.dtype.cl}, b{i})" for i, v in enumerate(values))

    def statements(self, at: Sequence[str], lane: int, width: int, name: str) -> str:
        """C text that finishes ``width`` results in register ``name``.

        ``at`` gives the coordinate along each axis of the root's output, ``lane`` the axis along
        which the lanes lie.
        """
        (out,) = self.root.outputs[:1]
        domain = analyse(self.step.nodes)
        assert domain is not None
        axes = domain.axes[out]
        loops = tuple(Dim(n, (i,)) for i, n in enumerate(domain.sizes))
        views = {**self.step.reads, **self.step.writes}
        strides = {v: tuple(s) for v, s in strides_by_dim(views, domain).items()}
        counts = {v: tuple(s) for v, s in counters_of(self.step, domain).items()}
        nest = Nest(loops, (), strides, counts, axes[lane], True)
        body = Body(self.step, domain, nest, width, Cut(1, 1))
        values = (*self.step.reads, *self.step.writes)
        body.pointers = {v: f"AT(b{i})" for i, v in enumerate(values)}
        positions = [f"const INDEX i{d} = {at[a]};" for a, d in enumerate(axes) if d is not None]
        result = f"const {register(out.dtype, width)} of_root = {name};"
        body.finish_registers(ChainMap({out: ("of_root", width > 1)}), width)
        return " ".join(["{", *positions, result, *(line.strip() for line in body.lines), "}"])


@dataclass(frozen=True)
class Store:
    """How a template stores: macros to add, and its output buffers."""

    macros: tuple[tuple[str, str], ...]
    outs: tuple[View, ...]


def storing(step: Step, params: str, at: Sequence[str], lane: int, widths: Sequence[int]) -> Store:
    """The end of a template whose FINISH takes (LW, ``params``, v), for the widths it uses.

    OUTPUTS is what its signature declares behind the operands.
    """
    epilogue = epilogue_of(step)
    if epilogue is None:
        return Store((("OUTPUTS", "BUF(TY, y)"),), tuple(step.writes.values())[:1])
    macros = [
        ("OUTPUTS", epilogue.signature),
        (f"FINISH_AT(LW, {params}, v)", f"FINISH_##LW({params}, v)"),
        (f"FINISH(LW, {params}, v)", f"FINISH_AT(LW, {params}, v)"),
    ]
    for width in dict.fromkeys(widths):
        text = epilogue.statements(at, lane, width, "v")
        macros.append((f"FINISH_{width}({params}, v)", text))
    return Store(tuple(macros), epilogue.args)


def epilogue_of(step: Step) -> Epilogue | None:
    """What follows the first node that is no source; None for a lone node."""
    root = next(n for n in step.nodes if not isinstance(n.op, SOURCES))
    rest = tuple(n for n in step.nodes if n is not root)
    if not any(n.inputs for n in rest):
        return None
    inside = {v for n in rest for v in n.outputs}
    wanted = {v for n in rest for v in n.inputs} - inside
    reads = {v: view for v, view in step.reads.items() if v in wanted}
    return Epilogue(Step(rest, reads, dict(step.writes)), root)
