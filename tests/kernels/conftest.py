"""What kernel tests share: a machine per OpenCL runtime."""

from __future__ import annotations

import pytest
from tests.conftest import RUNTIMES, require_runtime
from tests.kernels.harness import Machine, machine

PARAMS = [
    pytest.param(name, marks=[pytest.mark.device, getattr(pytest.mark, name)]) for name in RUNTIMES
]


@pytest.fixture(params=PARAMS)
def opencl(request: pytest.FixtureRequest) -> Machine:
    """An opened device of each runtime."""
    require_runtime(request.param)
    return machine(request.param)
