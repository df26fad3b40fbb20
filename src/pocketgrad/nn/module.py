"""Module: a description of layers and their parameters, in PyTorch's vocabulary.

A module computes nothing itself. Inside ``forward``, ``self.weight`` is the symbolic value bound to
the parameter by the current trace; outside, it is the ``Parameter`` with its NumPy array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import GraphError, SettingError
from pocketgrad.ir.core import Value
from pocketgrad.nn import init, state, tracing
from pocketgrad.nn.parameter import Buffer, Parameter, Tensorlike


class Module:
    """Base of layers and models: assign layers and Parameters to attributes, write forward()."""

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        self = super().__new__(cls)
        for table in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, table, {})
        object.__setattr__(self, "_mode", True)
        return self

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Buffer | None]
    _modules: dict[str, Module | None]
    _mode: bool

    # ---- describing ---------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # each layer has its own signature
        """What the module computes, in terms of ``ops`` and other modules."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # as forward()
        trace = tracing.require(type(self).__name__)
        if any(isinstance(a, np.ndarray) for a in (*args, *kwargs.values())):
            raise GraphError(
                f"{type(self).__name__} got a NumPy array while a step is described; "
                "arrays are fed when the step runs"
            )
        with trace.entered(self):
            return self.forward(*args, **kwargs)

    def update_buffer(self, name: str, new: Value) -> None:
        """Inside forward(): what this buffer holds after the step."""
        buffer = self._buffers.get(name)
        if buffer is None:
            raise SettingError(f"{type(self).__name__} has no buffer '{name}'")
        tracing.require(type(self).__name__).update(buffer, name, new)

    @property
    def training(self) -> bool:
        """Whether layers behave as in training; False in a trace of evaluation, or after eval()."""
        trace = tracing.active()
        return self._mode and (trace is None or trace.training)

    @training.setter
    def training(self, mode: bool) -> None:
        object.__setattr__(self, "_mode", mode)

    # ---- parts --------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        tables: tuple[dict[str, Any], ...] = (self._parameters, self._buffers, self._modules)
        for table, kind in zip(tables, (Parameter, Buffer, Module), strict=True):
            if isinstance(value, kind):
                for other in tables:
                    if other is not table:
                        other.pop(name, None)
                self.__dict__.pop(name, None)
                table[name] = value
                return
        for table in tables:
            if name in table:
                if value is not None:
                    raise SettingError(
                        f"{type(self).__name__}.{name} cannot become a {type(value).__name__}; "
                        f"set {name}.data, or assign a new {type(table[name]).__name__}"
                    )
                table[name] = None
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:  # a Value while tracing, a Parameter otherwise
        if name in self._modules:
            return self._modules[name]
        table: Mapping[str, Tensorlike | None]
        table = self._parameters if name in self._parameters else self._buffers
        if name not in table:
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        tensor, trace = table[name], tracing.active()
        return tensor if tensor is None or trace is None else trace.value(tensor, name)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                return
        object.__delattr__(self, name)

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Give the module a parameter, or say with None that it has none of this name."""
        self._parameters[name] = parameter

    def register_buffer(self, name: str, buffer: Buffer | Array | None) -> None:
        """Give the module an array that is state, not trained."""
        given = buffer if buffer is None or isinstance(buffer, Buffer) else Buffer(buffer)
        self._buffers[name] = given

    def add_module(self, name: str, module: Module | None) -> None:
        """Give the module a part."""
        if "." in name or not name:
            raise SettingError(f"a layer's name must not be empty or hold a dot, got '{name}'")
        self._modules[name] = module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct parts."""
        return ((name, part) for name, part in self._modules.items() if part is not None)

    def children(self) -> Iterator[Module]:
        """The direct parts, without their names."""
        return (part for _, part in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below; one that is used twice comes under its first name."""
        seen: set[int] = set()
        for name, part in self._walk(prefix):
            if id(part) not in seen:
                seen.add(id(part))
                yield name, part

    def modules(self) -> Iterator[Module]:
        """This module and all below."""
        return (part for _, part in self.named_modules())

    def _walk(self, prefix: str) -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, part in self.named_children():
            yield from part._walk(f"{prefix}.{name}" if prefix else name)

    def entries(self, prefix: str = "") -> Iterator[tuple[str, Tensorlike]]:
        """Parameters and buffers in PyTorch's order; shared ones under each of their names."""
        for path, part in self._walk(prefix):
            for table in (part._parameters, part._buffers):
                for name, tensor in table.items():
                    if tensor is not None:
                        yield f"{path}.{name}" if path else name, tensor

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, Tensorlike]]:
        """Parameters and buffers, each once, under its first name."""
        seen: set[int] = set()
        for name, tensor in self.entries(prefix):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """All parameters, each once, under its first name."""
        return ((n, t) for n, t in self.tensors(prefix) if isinstance(t, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """All parameters, each once."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Buffer]]:
        """All buffers, each once, under its first name."""
        return ((n, t) for n, t in self.tensors(prefix) if isinstance(t, Buffer))

    def buffers(self) -> Iterator[Buffer]:
        """All buffers, each once."""
        return (buffer for _, buffer in self.named_buffers())

    # ---- state --------------------------------------------------------------------------------

    def initialise(self, seed: int = 0, *, overwrite: bool = False) -> Self:
        """Draw the numbers of all parameters that have none yet (``overwrite``: of all)."""
        for name, parameter in self.named_parameters():
            if overwrite or not parameter.initialised:
                parameter.initialise(init.stream(seed, name))
        if overwrite:
            for buffer in self.buffers():
                buffer.reset()
        return self

    def state_dict(self) -> dict[str, Array]:
        """Copies of all parameters and persistent buffers under PyTorch's names.

        A model that was not initialised yet is, with seed 0.
        """
        self.initialise(0)
        return {name: tensor.data.copy() for name, tensor in state.kept(self.entries())}

    def load_state_dict(self, arrays: Mapping[str, Any], strict: bool = True) -> state.Mismatch:
        """Take over arrays by name; nothing changes unless all fit.

        With ``strict=False`` missing and unexpected names are returned, not refused; wrong shapes
        always are.
        """
        return state.load(dict(state.kept(self.entries())), arrays, strict)

    def train(self, mode: bool = True) -> Self:
        """Let layers behave as in training."""
        for part in self.modules():
            part.training = mode
        return self

    def eval(self) -> Self:
        """Let layers behave as in use: no dropout, running statistics as they are."""
        return self.train(False)

    def requires_grad_(self, flag: bool = True) -> Self:
        """Freeze (False) or free all parameters below; frozen ones cost no gradient."""
        for parameter in self.parameters():
            parameter.trainable = flag
        return self

    def apply(self, function: Callable[[Module], object]) -> Self:
        """Call a function with every part, the innermost first."""
        for part in self.children():
            part.apply(function)
        function(self)
        return self

    def parameter_count(self, trainable_only: bool = False) -> int:
        """Number of parameter elements."""
        return sum(p.size for p in self.parameters() if p.trainable or not trainable_only)

    # ---- printing -----------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands in the parentheses when the module is printed."""
        return ""

    def __repr__(self) -> str:
        parts = [f"({name}): {part!r}" for name, part in self.named_children()]
        if not parts:
            return f"{type(self).__name__}({self.extra_repr()})"
        inside = "\n".join(parts).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {inside}\n)"
