"""The list of operations is complete, sorted and without two of one name."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import pocketgrad.ops
from pocketgrad.ir.core import Op
from pocketgrad.ops import ALL, VOCABULARY


def test_every_concrete_op_of_the_folder_is_listed() -> None:
    found = set()
    for module in pkgutil.iter_modules(pocketgrad.ops.__path__):
        name = f"{pocketgrad.ops.__name__}.{module.name}"
        for _, cls in inspect.getmembers(import_module(name), inspect.isclass):
            if issubclass(cls, Op) and cls.__module__ == name:
                found.add(cls)
    general = {base for cls in found for base in cls.__mro__[1:]}  # what others specialise
    assert found - general == set(ALL)


def test_the_list_is_sorted_by_file_and_name() -> None:
    names = [(op.__module__, op.__name__) for op in ALL]
    assert names == sorted(names)


def test_no_two_ops_print_the_same_name() -> None:
    assert len(VOCABULARY) == len(ALL)
