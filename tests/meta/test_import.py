"""Importing the package is cheap: nothing heavy is loaded, and it takes under 0.3 s."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import pytest

HEAVY = {
    "pyopencl",
    "rich",
    "torch",
    "safetensors",
    "asyncio",
    "multiprocessing",
    "importlib.metadata",
}
IMPORT_LIMIT_S = 0.3


def python(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def loaded_by(code: str) -> set[str]:
    return set(python(f"{code}; import sys; print(' '.join(sys.modules))").split())


def test_importing_loads_nothing_heavy_beyond_numpy() -> None:
    more = loaded_by("import numpy, pocketgrad") - loaded_by("import numpy")
    assert not HEAVY & more


@pytest.mark.perf
def test_importing_takes_under_its_limit() -> None:
    """The median of nine fresh processes, less an interpreter that imports nothing."""

    def seconds(code: str) -> float:
        start = time.perf_counter()
        python(code)
        return time.perf_counter() - start

    pairs = [(seconds("import pocketgrad"), seconds("pass")) for _ in range(9)]
    taken = statistics.median(ours - bare for ours, bare in pairs)
    assert taken < IMPORT_LIMIT_S, f"import pocketgrad takes {taken:.2f} s"
