"""Reverse-mode differentiation: appends cotangents to the graph being built.

Only values on a path from ``wrt`` to the loss get a cotangent: frozen parameters and plain inputs
cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgrad.base.errors import NoGradientError, ShapeError
from pocketgrad.ir.build import Builder, emit
from pocketgrad.ir.core import Node, Value
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.source import Constant


def gradients(
    builder: Builder, loss: Value, wrt: Sequence[Value], seed: Value | None = None
) -> list[Value | None]:
    """d loss / d each of ``wrt``; None where the loss does not depend on it.

    ``seed`` is the cotangent of the loss: 1 for a scalar by default.
    """
    if seed is None and loss.shape != ():
        raise ShapeError(f"a gradient needs a scalar loss, got {loss.type}; average it first")
    nodes = tuple(builder.nodes)
    active = _reached_from(wrt, nodes)
    if loss not in active:
        return [None] * len(wrt)
    cts: dict[Value, Value] = {}
    with builder.located("", "backward"):
        cts[loss] = seed if seed is not None else emit(Constant(1.0, loss.dtype))
    for node in reversed(nodes):
        out_cts = tuple(cts.get(v) for v in node.outputs)
        if all(ct is None for ct in out_cts) or not any(v in active for v in node.inputs):
            continue
        with builder.located(node.scope, "backward"):
            _accumulate(node, out_cts, active, cts)
    return [cts.get(v) for v in wrt]


def _accumulate(
    node: Node, out_cts: tuple[Value | None, ...], active: set[Value], cts: dict[Value, Value]
) -> None:
    try:
        in_cts = node.op.vjp(node.inputs, node.outputs, out_cts)
    except NoGradientError as error:
        raise NoGradientError(f"{error} (in layer '{node.scope}')") from None
    for value, ct in zip(node.inputs, in_cts, strict=True):
        if ct is None or value not in active:
            continue
        if ct.type != value.type:
            raise ShapeError(f"the gradient of {node.op.label()} for {value} has type {ct.type}")
        cts[value] = add(cts[value], ct) if value in cts else ct


def _reached_from(wrt: Sequence[Value], nodes: tuple[Node, ...]) -> set[Value]:
    reached = set(wrt)
    for node in nodes:
        if any(v in reached for v in node.inputs):
            reached.update(v for v in node.outputs if v.dtype.is_float)
    return reached
