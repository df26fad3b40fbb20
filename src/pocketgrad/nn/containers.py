"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from pocketgrad.base.errors import SettingError
from pocketgrad.nn.module import Module


class Listed(Module):
    """Base: parts named 0, 1, 2 …, with the behaviour of a list."""

    def append(self, module: Module) -> Module:
        """Add a part at the end."""
        self.add_module(str(len(self._modules)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Module:
        """Add parts at the end."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    @overload
    def __getitem__(self, index: int) -> Module: ...

    @overload
    def __getitem__(self, index: slice) -> Module: ...

    def __getitem__(self, index: int | slice) -> Module:
        parts = list(self.named_children())
        if isinstance(index, slice):
            chosen = type(self).__new__(type(self))
            for name, part in parts[index]:
                chosen.add_module(name, part)
            return chosen
        if not -len(parts) <= index < len(parts):
            raise IndexError(f"{type(self).__name__} has {len(parts)} parts, there is no {index}")
        return parts[index][1]


class Sequential(Listed):
    """Parts called one after the other; given modules, or one mapping from names to modules."""

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            named = dict(modules[0])
        else:
            named = {str(i): _module(m, i) for i, m in enumerate(modules)}
        for name, module in named.items():
            self.add_module(name, module)

    def forward(self, x: Any) -> Any:  # whatever the first part takes and the last gives
        for part in self.children():
            x = part(x)
        return x


class ModuleList(Listed):
    """A list of parts that a model calls itself."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)


def _module(given: object, position: int) -> Module:
    if not isinstance(given, Module):
        advice = "pass the modules themselves, not a list" if isinstance(given, list) else ""
        raise SettingError(
            f"Sequential takes modules, argument {position} is a {type(given).__name__}"
            + (f"; {advice}" if advice else "")
        )
    return given
