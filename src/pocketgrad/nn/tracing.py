"""While a step is described: which symbolic value stands for which parameter.

``with tracing(values, training=True, seed=…, step=…) as t:`` then call the model; afterwards
``t.updates`` holds the new values of buffers by full name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from pocketgrad.base.errors import GraphError, ShapeError
from pocketgrad.ir.build import current
from pocketgrad.ir.core import Value
from pocketgrad.nn.parameter import Buffer, Tensorlike


class Layered(Protocol):
    """What a trace asks of a module."""

    def named_modules(self, prefix: str = ...) -> Iterator[tuple[str, Layered]]:
        """It and all below."""

    def tensors(self, prefix: str = ...) -> Iterator[tuple[str, Tensorlike]]:
        """Parameters and buffers, each once."""


_active: ContextVar[Tracing | None] = ContextVar("tracing", default=None)


class Tracing:
    """The bindings of one trace. The first module called is the model; ``bind`` adds others."""

    def __init__(
        self, values: Mapping[str, Value], training: bool, seed: Value | None, step: Value | None
    ) -> None:
        self.values, self.training = dict(values), training
        self.updates: dict[str, Value] = {}
        self._seed, self._step = seed, step
        self._streams = 0
        self._tensors: dict[int, str] = {}
        self._modules: dict[int, str] = {}
        self._path: list[str] = []

    def bind(self, module: Layered, prefix: str = "") -> None:
        """Let the values be found that are named by their place in ``module`` behind a prefix."""
        for name, part in module.named_modules(prefix):
            self._modules.setdefault(id(part), name)
        for name, tensor in module.tensors(prefix):
            self._tensors.setdefault(id(tensor), name)

    def value(self, tensor: Tensorlike, attribute: str) -> Value:
        """The symbolic value of a parameter, or the latest one of a buffer."""
        name = self.name(tensor, attribute)
        for bound in (self.updates, self.values):
            if name in bound:
                return bound[name]
        raise GraphError(f"the {tensor.kind} '{name}' was given no value for this trace")

    def name(self, tensor: Tensorlike, attribute: str) -> str:
        """The full name of a parameter or buffer of a bound module."""
        try:
            return self._tensors[id(tensor)]
        except KeyError:
            where = f" in '{self._path[-1]}'" if self._path and self._path[-1] else ""
            raise GraphError(
                f"the {tensor.kind} '{attribute}'{where} is not part of the model that is traced; "
                "assign its layer to an attribute of a module in __init__"
            ) from None

    def update(self, buffer: Buffer, attribute: str, new: Value) -> None:
        """Record what a buffer holds after the step."""
        bound = self.value(buffer, attribute).type
        if new.type != bound:
            raise ShapeError(f"the buffer '{attribute}' is {bound}, not {new.type}")
        self.updates[self.name(buffer, attribute)] = new

    @contextmanager
    def instead(self, values: Mapping[str, Value]) -> Iterator[None]:
        """Inside, parameters of these full names have these values."""
        kept = self.values
        self.values = {**kept, **values}
        try:
            yield
        finally:
            self.values = kept

    def next_stream(self) -> int:
        """A number for one use of random numbers; numbered in the order of the calls."""
        self._streams += 1
        return self._streams

    @property
    def random(self) -> tuple[Value, Value]:
        """The seed and the step that random numbers are made from."""
        if self._seed is None or self._step is None:
            raise GraphError(
                "the model uses random numbers, and this trace was given no seed and step"
            )
        return self._seed, self._step

    @contextmanager
    def entered(self, module: Layered) -> Iterator[None]:
        """Nodes emitted inside belong to the layer ``module``."""
        builder = current()
        if id(module) not in self._modules:
            if not self._modules:
                self.bind(module)
            else:  # made inside forward(): it has a name only here
                here = self._path[-1] if self._path else ""
                own = type(module).__name__.lower()
                self._modules[id(module)] = f"{here}.{own}" if here else own
        name = self._modules[id(module)]
        here = self._path[-1] if self._path else ""
        self._path.append(name)
        try:
            if local := _below(name, here):
                with builder.scope(local):
                    yield
            else:
                yield
        finally:
            self._path.pop()


def _below(name: str, here: str) -> str:
    """A module's name as seen from the module that calls it."""
    if not here or name == here:
        return "" if name == here else name
    if name.startswith(f"{here}."):
        return name.removeprefix(f"{here}.")
    return name.rpartition(".")[2]


@contextmanager
def tracing(
    values: Mapping[str, Value],
    training: bool = False,
    seed: Value | None = None,
    step: Value | None = None,
) -> Iterator[Tracing]:
    """Describe a step: modules called inside see ``values`` in place of their parameters."""
    trace = Tracing(values, training, seed, step)
    token = _active.set(trace)
    try:
        yield trace
    finally:
        _active.reset(token)


def active() -> Tracing | None:
    """The trace that is being described, if any."""
    return _active.get()


def require(what: str) -> Tracing:
    """The trace that is being described; an error that says how to get one."""
    trace = _active.get()
    if trace is None:
        raise GraphError(
            f"{what} was called outside of a step. A module describes a computation on symbolic "
            "values; use Trainer, compile_step or predict to run it on arrays"
        )
    return trace
