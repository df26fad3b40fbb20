"""The harness is tested: a gradient that is slightly wrong must be caught."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests.helpers.gradcheck import check_gradient

from pocketgrad.base.dtypes import Array, float64
from pocketgrad.ir.build import emit_all
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.ops.arithmetic import mul
from pocketgrad.ops.transcendental import Exp


@dataclass(frozen=True)
class WrongExp(Exp):
    """exp, with a gradient too large by 0.1 %."""

    def scalar(self, x: Array) -> Array:
        return np.exp(x)

    def partials(self, ins: tuple[Value, ...], out: Value, ct: Value) -> tuple[Value | None, ...]:
        return (mul(ct, mul(out, 1.001)),)


@pytest.mark.parametrize("seed", range(10))
def test_a_gradient_wrong_by_a_thousandth_is_caught(seed: int) -> None:
    feeds = {"x0": np.random.default_rng(seed).uniform(-1, 1, (3, 33))}
    ins = [TensorType((3, 33), float64)]
    check_gradient(lambda x: emit_all(Exp(), x), ins, feeds, seed)
    with pytest.raises(AssertionError, match="by differences"):
        check_gradient(lambda x: emit_all(WrongExp(), x), ins, feeds, seed)
