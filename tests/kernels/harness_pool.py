"""Another name of the harness, for test modules on their way to it."""

from tests.kernels.harness import *  # noqa: F403
