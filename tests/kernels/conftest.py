"""What kernel tests share: a machine per OpenCL runtime."""

from __future__ import annotations

import pytest
from tests.conftest import RUNTIMES, require_runtime
from tests.kernels.harness import Machine, machine

PARAMS = [
    pytest.param(name, marks=[pytest.mark.device, getattr(pytest.mark, name)]) for name in RUNTIMES
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test that asks for a machine runs on all, or on the one named with --device."""
    if "opencl" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--device")
        names = [pytest.param(chosen, marks=pytest.mark.device)] if chosen else PARAMS
        metafunc.parametrize("opencl", names, indirect=True)


@pytest.fixture
def opencl(request: pytest.FixtureRequest) -> Machine:
    """An opened device of each runtime."""
    if request.param in RUNTIMES:
        require_runtime(request.param)
    return machine(request.param)
