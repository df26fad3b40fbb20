"""Why a step went wrong: the batch again, node by node in NumPy, over the frozen device state.

A loss that is not finite is traced back to the first operation that made it out of finite numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError, NumericsError, PocketgradError
from pocketgrad.ir.core import Graph, Node, Value
from pocketgrad.train.batches import Batch
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, build_graph


def bad_label(
    session: Session, inputs: Inputs, batch: Batch, position: int, where: str
) -> DataError | None:
    """The error for a label out of range at a position in a batch; None where it is in range."""
    prediction = build_graph(session.spec, inputs, "predict").outputs[0]
    classes = prediction.shape[1]
    labels = np.ravel(batch.y[position])
    outside = labels[(labels < 0) | (labels >= classes)]
    if not outside.size:
        return None
    return DataError(
        f"{where}: the label at position {position} of the batch is {int(outside[0])}, out of "
        f"range: the model has {classes} classes, labels go from 0 to {classes - 1}"
    )


def broken_loss(
    session: Session, inputs: Inputs, batch: Batch, where: str
) -> PocketgradError | None:
    """The error for a loss that is not finite; None where this batch gives a finite one."""
    graph = build_graph(session.spec, inputs, session.train_kind())
    feeds: dict[str, Array] = {n: session.read_state(n) for n in session.spec.state}
    feeds |= {"x": batch.x, "y": batch.y, "weight": batch.weight}
    (loss,) = (v for v in graph.outputs if v.name == "loss")
    known = evaluate(graph, feeds, loss)
    if np.isfinite(known[loss]):
        return None
    what = f"{where}: the loss is {float(known[loss])}"
    value = origin(graph, known, loss)
    node = graph.producers.get(value)
    if node is not None:
        return NumericsError(f"{what}; {_made_by(node, value, known)}; {_ADVICE}")
    if value.name == "x":
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(batch.x))[0])
        return DataError(
            f"{what}, because x holds {batch.x[place]} at position {place[0]} of the batch, index "
            f"{place[1:]}; remove or replace such values before training"
        )
    if value.name in ("y", "weight"):
        return DataError(f"{what}, because {value.name} holds numbers that are not finite")
    return NumericsError(
        f"{what}, because {_broken_states(session, value, known[value])} not finite before the "
        f"step: the update before it overflowed; {_ADVICE}"
    )


_ADVICE = "lower the learning rate, or limit gradients with clip_norm"


def evaluate(graph: Graph, feeds: Mapping[str, Array], target: Value) -> dict[Value, Array]:
    """Every value up to ``target``, by the definitions of the operations."""
    known = {v: feeds[v.name] for v in graph.inputs}
    with np.errstate(all="ignore"):  # looking for the first bad number is the purpose
        for node in graph.nodes:
            outputs = node.op.ref(*(known[v] for v in node.inputs))
            known.update(zip(node.outputs, outputs, strict=True))
            if target in known:
                break
    return known


def origin(graph: Graph, known: Mapping[Value, Array], value: Value) -> Value:
    """The first bad value on the way to ``value``: an input, or made from finite numbers."""
    while (node := graph.producers.get(value)) is not None:
        bad = [v for v in node.inputs if not _finite(known[v])]
        if not bad:
            return value
        nan = [v for v in bad if np.isnan(known[v]).any()]
        value = (nan or bad)[0]
    return value


def _made_by(node: Node, value: Value, known: Mapping[Value, Array]) -> str:
    made = "NaN" if np.isnan(known[value]).any() else "an infinity"
    layer = f"in layer '{node.scope}'" if node.scope else "in the loss"
    ranges = ", ".join(f"{v.type} {_range(known[v])}" for v in node.inputs) or "no operands"
    return f"{made} first came from {node.op.label()} {layer}, with operands {ranges}"


def _broken_states(session: Session, value: Value, flat: Array) -> str:
    packing = session.spec.packings.get(value.name)
    if packing is None:
        return f"the state '{value.name}' was"
    names = [n for n in packing.offsets if not _finite(packing.part(flat, n))]
    shown = ", ".join(f"'{n}'" for n in names[:3]) + (" …" if len(names) > 3 else "")
    return f"{shown} {'was' if len(names) == 1 else 'were'}"


def _range(array: Array) -> str:
    return f"[{array.min():.4g} … {array.max():.4g}]" if array.size else "[]"


def _finite(array: Array) -> bool:
    return bool(np.isfinite(array).all())
