"""What all tests share: devices, a cache of their own, golden texts, settings of searches."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pocketgrad.backends.api import Backend

GOLDEN = Path(__file__).parent / "golden"
IN_CI = os.environ.get("CI") == "true"

# Selector of open_backend, a part of its library's name, how to get it.
RUNTIMES = {
    "pocl": ("pocl", "apt install pocl-opencl-icd"),
    "intel": ("intelocl", "pip install -e '.[cpu]'"),
}
DEVICES = [
    "reference",
    *(
        pytest.param(name, marks=[pytest.mark.device, getattr(pytest.mark, name)])
        for name in RUNTIMES
    ),
]

settings.register_profile(
    "tests",
    deadline=None,  # the first example builds kernels
    derandomize=True,  # the same examples everywhere; marked searches choose their own seed
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--regen`` is what tools/regen calls; ``--device`` is for a device of one's own."""
    parser.addoption("--regen", action="store_true", help="rewrite the golden texts")
    parser.addoption("--device", metavar="SELECTOR", help="run tests of devices on this one alone")


def pytest_configure(config: pytest.Config) -> None:
    """Settings are read once per process, so they are made before anything imports them."""
    os.environ["POCKETGRAD_VERIFY"] = "1"
    if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share their parent's cache
        folder = tempfile.mkdtemp(prefix="pocketgrad-tests-")
        os.environ["POCKETGRAD_CACHE"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test beside another framework needs it: an optional guest at a desk, a must in CI."""
    for mark in item.iter_markers("peer"):
        for name in mark.args or ("torch",):
            if importlib.util.find_spec(name) is None:
                missing(f"{name} is not installed: pip install -e '.[peer]'")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test that asks for a device runs on all, or on the one named on the command line."""
    if "device" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--device")
        devices = [pytest.param(chosen, marks=pytest.mark.device)] if chosen else DEVICES
        metafunc.parametrize("device", devices, indirect=True)


def missing(reason: str) -> None:
    """Skip with a reason, or fail where everything has to be there."""
    if IN_CI:
        pytest.fail(f"CI runs every test, but {reason}")
    pytest.skip(reason)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    """A selector of ``open_backend``, and of every ``device=`` argument: any of ours."""
    name: str = request.param
    if name in RUNTIMES:
        require_runtime(name)
    return name


@pytest.fixture
def backend(device: str) -> Backend:
    """The opened backend of ``device``. One that is installed and cannot be opened is a failure."""
    from pocketgrad.backends import open_backend

    return open_backend(device)


def require_runtime(name: str) -> None:
    """Skip, or in CI fail, unless the driver is installed; whether it works, a test says."""
    from pocketgrad.backends.icds import discover
    from pocketgrad.base.config import settings as of_process

    stem, advice = RUNTIMES[name]
    if not any(stem in Path(icd.library).name for icd in discover(of_process())):
        missing(f"the OpenCL runtime '{name}' is not installed: {advice}")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/golden/NAME; ``tools/regen golden`` rewrites the file instead.

    A test that uses it carries the mark ``golden``, so that tools/regen finds it.
    """
    if request.node.get_closest_marker("golden") is None:
        pytest.fail("a test with golden text needs @pytest.mark.golden")

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--regen"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"tests/golden/{name} is missing; write it with tools/regen golden"
        assert text == path.read_text(), (
            f"tests/golden/{name} differs; if intended, tools/regen golden"
        )

    return compare
