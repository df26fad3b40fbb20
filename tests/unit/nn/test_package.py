"""``import pocketgrad`` loads nothing; its parts load when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pocketgrad as pg


def test_importing_the_package_loads_no_part_of_it():
    code = (
        "import sys, pocketgrad as pg; "
        "assert not {'numpy', 'pyopencl', 'rich'} & set(sys.modules); "
        "pg.nn.Linear(3, 4); pg.optim.SGD(0.1); "
        "assert not {'pyopencl', 'rich', 'torch'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_parts_are_found_by_name():
    assert pg.optim is pg.nn.optim
    assert pg.nn.Sequential(pg.nn.Linear(2, 3)).parameter_count() == 9
    assert {"nn", "optim", "Trainer"} <= set(dir(pg))


def test_an_unknown_part_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'Trainer'"):
        _ = pg.Trianer
