"""Data classes as JSON and back, led by their annotations: a new field needs no code here."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from pocketgrad.base.dtypes import Array


def encode(value: Any) -> Any:
    """As lists, dicts, numbers, texts and None. Arrays of times become their differences."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def decode(kind: Any, found: Any) -> Any:
    """A value of an annotated type, from what `encode` made of it."""
    if kind is Any or found is None:
        return found
    if isinstance(kind, types.UnionType) or get_origin(kind) is Union:
        options = [option for option in get_args(kind) if option is not types.NoneType]
        return decode(options[0], found) if len(options) == 1 else found
    origin = get_origin(kind)
    if origin is not None:
        return _decode_many(origin, get_args(kind), found)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: decode(hints[name], item) for name, item in found.items()})
    return kind(found)


def _decode_many(origin: Any, parts: tuple[Any, ...], found: Any) -> Any:
    if origin is np.ndarray:
        return _decode_array(found)
    if origin is tuple:
        return tuple(decode(parts[0], item) for item in found)
    return {key: decode(parts[1], item) for key, item in found.items()}


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _encode_array(array: Array) -> dict[str, Any]:
    shape = list(array.shape)
    flat = array.reshape(-1)
    if array.dtype.kind == "i":  # times and counts: differences take a third of the text
        steps = np.diff(flat, prepend=flat.dtype.type(0))
        return {"dtype": array.dtype.name, "shape": shape, "steps": steps.tolist()}
    return {"dtype": array.dtype.name, "shape": shape, "values": flat.tolist()}


def _decode_array(found: Mapping[str, Any]) -> Array:
    if "steps" in found:
        flat = np.cumsum(np.array(found["steps"], found["dtype"]), dtype=found["dtype"])
    else:
        flat = np.array(found["values"], found["dtype"])
    array: Array = flat.reshape(found["shape"])
    array.flags.writeable = False
    return array
