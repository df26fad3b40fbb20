"""How far results may be apart: the only place with tolerances.

An error is judged relative to the magnitude of what was summed, and may grow with the square root
of the number of terms, as rounding errors of random sign do.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pocketgrad.base.dtypes import Array, DType

# Units in the last place of a single operation's result that a kernel may be off by. OpenCL allows
# exp, log, pow and the like 3 to 16 of them, and a fused op chains a few.
ULPS = 32

# Rounding unit of each element type. Half is storage: computed in float32, rounded once.
UNIT = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
ULPS_OF_HALF = 2

# Central differences in float64 with step h lose h² to curvature and unit / h to rounding.
STEP = 1e-5
GRADIENT = 2e-7

# Sums a number of a small network went through, forward and backward; five updates later, as many
# each time, and each grows by what the network does to small differences.
TERMS_OF_NETWORK = 1_000
TERMS_AFTER_STEPS = 10_000

# Winograd's transforms add numbers that mostly cancel later, so an error is judged by the largest
# result: F(4x4) rounds like 1e-5 of it, its gradient for the weights like 6e-5. A wrong tap or tile
# is off by 1e-2 and more.
WINOGRAD = 2e-4

# How many times as far from float64 as PyTorch's own float32 a long training may end: differences
# grow with the steps, from whichever order of sums they began.
LONG_RUN = 8


def allowed(dtype: DType, terms: int = 1, magnitude: float = 1.0) -> float:
    """The largest absolute error of a result that sums ``terms`` terms of this size."""
    ulps = ULPS_OF_HALF if dtype.name == "float16" else ULPS
    return UNIT[dtype.name] * ulps * sqrt(max(1, terms)) * magnitude


def assert_close(
    found: Array, expected: Array, dtype: DType, terms: int = 1, what: str = "result"
) -> None:
    """Equal for integers; for floats within the tolerance, NaN and infinity at the same places."""
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    if not dtype.is_float:
        wrong = np.argwhere(found != expected)
        assert not len(wrong), f"{what}: {len(wrong)} elements differ, the first at {wrong[0]}"
        return
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    same = np.array_equal(found[~finite], expected[~finite], equal_nan=True)
    assert same, f"{what}: NaN or infinity at other places"
    if not finite.any():
        return
    magnitude = float(np.abs(expected[finite]).max())
    error = np.where(finite, np.abs(found - np.where(finite, expected, 0)), 0)
    error[np.isnan(error)] = np.inf
    worst = np.unravel_index(np.argmax(error), error.shape)
    bound = allowed(dtype, terms, max(magnitude, 1e-30))
    assert error[worst] <= bound, (
        f"{what}: off by {error[worst]:.3g} at {tuple(map(int, worst))} "
        f"({found[worst]:.9g}, not {expected[worst]:.9g}); allowed {bound:.3g}"
    )


def assert_winograd(found: Array, expected: Array, what: str = "result") -> None:
    """Equal within what Winograd's transforms may cost."""
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    scale = float(np.abs(expected).max(initial=0.0))
    rounding = UNIT[expected.dtype.name] * scale
    error = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    assert np.all(error <= WINOGRAD * scale + rounding), (
        f"{what}: off by {np.nanmax(error):.3g}; allowed {WINOGRAD * scale + rounding:.3g}"
    )


# Relative differences of all gradients of a network together, of float32 against float32 in another
# order: below a dozen layers sums differ in the last bits; behind fifty layers of batch norm over
# three samples each difference has grown a thousandfold.
SHALLOW, DEEP = 1e-3, 2e-2
