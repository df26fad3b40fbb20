"""Building graphs: an ambient Builder collects the nodes that functions of ``ops`` emit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token

from pocketgrad.base.errors import GraphError, PocketgradError
from pocketgrad.ir.core import Graph, Node, Op, TensorType, Value

_current: ContextVar[Builder] = ContextVar("builder")


class Builder:
    """Collects inputs and nodes. Use as a context manager; the innermost one receives emits."""

    def __init__(self, value_type: type[Value] = Value) -> None:
        self._value_type = value_type
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self._scope: list[str] = []
        self._phase = "forward"
        self._counts: dict[str, int] = {}
        self._tokens: list[Token[Builder]] = []

    def __enter__(self) -> Builder:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *exc: object) -> None:
        _current.reset(self._tokens.pop())

    def value(self, type: TensorType, stem: str) -> Value:
        """A new value with a name no other has here."""
        count = self._counts.get(stem, 0)
        self._counts[stem] = count + 1
        return self._value_type(type, stem if count == 0 else f"{stem}_{count}")

    def input(self, type: TensorType, name: str) -> Value:
        """Declare an input; its name must be free, since feeds are given by it."""
        if name in self._counts:
            raise GraphError(f"the input name '{name}' is taken; give each input its own")
        value = self.value(type, name)
        self.inputs.append(value)
        return value

    def add(self, op: Op, *inputs: Value) -> tuple[Value, ...]:
        """Append a node and return its outputs."""
        try:
            types = op.infer(*(v.type for v in inputs))
        except PocketgradError as error:
            where = f" in {'.'.join(self._scope)}" if self._scope else ""
            raise type(error)(f"{op.label()}{where}: {error}") from None
        outputs = tuple(self.value(t, op.label()) for t in types)
        self.nodes.append(Node(op, inputs, outputs, ".".join(self._scope), self._phase))
        return outputs

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Nodes emitted inside belong to the layer ``name`` (nested names are joined by dots)."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    @contextmanager
    def located(self, scope: str, phase: str) -> Iterator[None]:
        """Nodes emitted inside belong to exactly this layer and phase."""
        saved = self._scope, self._phase
        self._scope, self._phase = [scope] if scope else [], phase
        try:
            yield
        finally:
            self._scope, self._phase = saved

    def graph(
        self, outputs: Sequence[Value], updates: Mapping[Value, Value] | None = None
    ) -> Graph:
        """The finished graph of everything emitted so far."""
        return Graph(tuple(self.inputs), tuple(self.nodes), tuple(outputs), dict(updates or {}))


def current() -> Builder:
    """The builder that receives emits; an error outside of any."""
    try:
        return _current.get()
    except LookupError:
        raise GraphError(
            "operations on symbolic values need a Builder: use them inside a module's forward(), "
            "or inside 'with Builder():'"
        ) from None


def emit_all(op: Op, *inputs: Value) -> tuple[Value, ...]:
    """Apply an op in the current builder; all its outputs."""
    return current().add(op, *inputs)


def emit(op: Op, *inputs: Value) -> Value:
    """Apply an op with one output in the current builder."""
    (output,) = current().add(op, *inputs)
    return output
