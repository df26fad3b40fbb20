"""Several launches as one: every kernel becomes a function of an item's number, called by item.

    work-item   0 1 2 3 … 15 | 16 17 … 23 | 24
    does        item of a    | item of b  | all items of c, then all of d, then all of e

Templates take part as they are: while they are read, ENTRY is a function with one parameter more,
and get_global_id(0) is that parameter. Offsets of tensors are constants of the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from pocketgrad.ir.core import Value
from pocketgrad.kernels.spec import KernelSource, Launch, Place
from pocketgrad.plan.plan import Slot
from pocketgrad.plan.views import View

MANY = 2  # times the items wanted: so many are dealt out in heaps

_IN_GROUPS = ("get_local_id", "get_group_id", "get_global_size", "barrier(", "local ")

Members = Sequence[tuple[Launch, Place]]


@dataclass(frozen=True)
class Enqueue:
    """One enqueue as a device gets it: pointers to ``buffers`` are its arguments, in order.

    With ``turns`` two numbers follow: the first batch of repeated inputs, and one past the last.
    """

    source: KernelSource
    buffers: tuple[str, ...]
    items: int
    turns: bool


@lru_cache(maxsize=4096)
def entry_name(source: KernelSource) -> str:
    """A name that depends on nothing but the source."""
    what = (source.text, source.defines, tuple(entry_name(f) for f in source.functions))
    return f"k{hashlib.sha256(repr(what).encode()).hexdigest()[:16]}"


def function_name(source: KernelSource) -> str:
    """That of the same as a function of an item: one program may have both."""
    return f"{entry_name(source)}_item"


def repeatable(stages: Sequence[Members]) -> bool:
    """Whether all that is to do is one work-item's: it can go on with the next batch by itself."""
    places = {place for members in stages for _, place in members}
    alone = len(places) == 1 and all(place.serial for place in places)
    return alone and len(stages) == 1 and len(stages[0]) > 1


def bundleable(launch: Launch) -> bool:
    """Whether its items are alone in their groups and know nothing but their number."""
    lone = len(launch.global_size) == 1 and launch.local_size in (None, (1,))
    return lone and not any(word in launch.source.text for word in _IN_GROUPS)


def worth(members: Members) -> bool:
    """Whether a bundle is better than the launch as it is: it may have more items than needed."""
    if len(members) > 1:
        return True
    ((launch, place),) = members
    return _each(launch, place) > 1 and bundleable(launch)


def _each(launch: Launch, place: Place) -> int:
    """How many items of a launch one work-item does."""
    count = prod(launch.global_size)
    return -(-count // place.items) if place.items and count >= MANY * place.items else 1


def bundle(
    members: Members, slots: Mapping[Value, Slot], repeated: Collection[str] = ()
) -> Enqueue:
    """The kernel that does the work of several launches of one stage."""
    used = {slots[view.base].buffer for launch, _ in members for view in launch.args}
    buffers = tuple(sorted(used))
    turns = not used.isdisjoint(repeated)
    write = _Writer(slots, {buffer: f"m{i}" for i, buffer in enumerate(buffers)}, repeated)
    tracks: dict[int, list[tuple[Launch, Place]]] = {}
    for launch, place in members:
        tracks.setdefault(place.track, []).append((launch, place))
    branches, items = [], 0
    for track in sorted(tracks.values(), key=lambda t: t[0][1].serial):
        serial = track[0][1].serial
        count = prod(track[0][0].global_size)
        each = _each(*track[0])
        calls = [write.call(launch, None if serial else items, each) for launch, _ in track]
        items += 1 if serial else -(-count // each)
        branches.append(f"    if (item < {items}) {{ {' '.join(calls)} }}")
    arguments = [f"global uchar* {name}" for name in write.names.values()]
    head = []
    if turns:
        arguments += ["const ulong first", "const ulong past"]
        head = ["    for (ulong turn = first; turn < past; turn++)"]
    text = [
        "kernel __attribute__((reqd_work_group_size(1, 1, 1)))",
        f"void ENTRY({', '.join(arguments)}) {{",
        "    const size_t item = get_global_id(0);",
        *head,
        "\n    else".join(branches),
        "}",
    ]
    functions = dict.fromkeys(launch.source for launch, _ in members)
    source = KernelSource("\n".join(text) + "\n", (), tuple(functions))
    return Enqueue(source, buffers, items, turns)


@dataclass(frozen=True)
class _Writer:
    """Calls of functions, with the places of tensors."""

    slots: Mapping[Value, Slot]
    names: Mapping[str, str]
    repeated: Collection[str]

    def call(self, launch: Launch, first: int | None, each: int) -> str:
        """``each`` items of a launch whose work begins at ``first``, or all where that is None."""
        name = function_name(launch.source)
        passed = ", ".join(part for view in launch.args for part in self._argument(view))
        count = prod(launch.global_size)
        if first is not None and each == 1:
            return f"{name}(item - {first}, {passed});"
        if first is not None:
            end = f"min((item - {first} + 1) * {each}ul, {count}ul)"
            return (
                f"for (size_t i = (item - {first}) * {each}; i < {end}; i++) {name}(i, {passed});"
            )
        if count == 1:
            return f"{name}(0, {passed});"
        return f"for (size_t i = 0; i < {count}; i++) {name}(i, {passed});"

    def _argument(self, view: View) -> tuple[str, str]:
        slot, dtype = self.slots[view.base], view.base.dtype
        start = f"{slot.offset // dtype.nbytes + view.offset}ul"
        if slot.buffer in self.repeated:
            start += f" + turn * {slot.nbytes // dtype.nbytes}ul"
        return f"(global void*){self.names[slot.buffer]}", start  # kernels may see other types
