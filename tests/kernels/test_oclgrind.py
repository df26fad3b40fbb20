"""Kernels touch only their own memory and have no races, as a simulator sees it.

In processes of their own, since drivers are chosen once per process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.kernels.under_oclgrind import LIBRARY

TOOL = Path(__file__).parents[2] / "tools" / "oclgrind"
pytestmark = pytest.mark.device


@pytest.fixture(autouse=True)
def _installed() -> None:
    if not LIBRARY.exists():
        missing("Oclgrind is not installed: apt install oclgrind")


def oclgrind(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, str(TOOL), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("fault", "sign"),
    [("read", "Invalid read"), ("write", "Invalid write"), ("race", "data race")],
)
def test_a_planted_fault_is_found(fault: str, sign: str):
    outcome = oclgrind("--plant", fault)
    assert outcome.returncode == 1, outcome.stderr
    assert sign in outcome.stdout


def test_a_kernel_without_fault_passes():
    outcome = oclgrind("--plant", "none")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_a_name_that_selects_nothing_is_no_success():
    outcome = oclgrind("--only", "nothing of this name")
    assert outcome.returncode == 2
    assert "nothing was checked" in outcome.stdout


@pytest.mark.slow
def test_no_kernel_has_a_fault():
    outcome = oclgrind()
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-4000:]
