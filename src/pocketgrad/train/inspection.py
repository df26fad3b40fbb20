"""What layers give for a batch: the prediction's graph with other outputs, run once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import SettingError, UnknownNameError
from pocketgrad.ir.core import Graph, Value
from pocketgrad.train.session import Session
from pocketgrad.train.step import Inputs, build_graph


def activations(
    session: Session, inputs: Inputs, x: Array, names: Sequence[str]
) -> dict[str, Array]:
    """The outputs of the layers of those names, in evaluation mode."""
    graph = build_graph(session.spec, inputs, "predict")
    known = [name for name, _ in session.spec.model.named_modules() if name]
    wanted = {name: _output(graph, name, known) for name in names}
    outputs = tuple(dict.fromkeys(wanted.values()))
    arrays = session.fetch(replace(graph, outputs=outputs), {"x": x})
    found = dict(zip(outputs, arrays, strict=True))
    return {name: found[value] for name, value in wanted.items()}


def _output(graph: Graph, name: str, known: Sequence[str]) -> Value:
    """The last value a layer makes."""
    if name not in known:
        raise UnknownNameError("layer", name, known)
    inside = [n for n in graph.nodes if n.scope == name or n.scope.startswith(f"{name}.")]
    if not inside:
        raise SettingError(
            f"the layer '{name}' computes nothing in evaluation mode; ask for the one before it"
        )
    return inside[-1].outputs[0]
