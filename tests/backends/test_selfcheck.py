"""The numeric self-check: every family has cases, wrong kernels are found, kept and not used."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.conftest import RUNTIMES, require_runtime
from tests.helpers.evaluate import evaluate

from pocketgrad import kernels
from pocketgrad.backends import open_backend, opencl
from pocketgrad.backends.api import Lowered
from pocketgrad.backends.null import NullBackend
from pocketgrad.backends.quarantine import Quarantine, Verdict
from pocketgrad.backends.reference import ReferenceBackend
from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DeviceError
from pocketgrad.engine import selfcheck
from pocketgrad.engine.compile import compile_graph, plan_graph
from pocketgrad.engine.selfcheck import CHECKED, checked, fingerprint, self_check
from pocketgrad.ir.build import Builder
from pocketgrad.ir.core import Graph, TensorType
from pocketgrad.kernels.loops import Loops
from pocketgrad.kernels.spec import DeviceInfo
from pocketgrad.ops.arithmetic import neg
from pocketgrad.ops.linalg import matmul
from pocketgrad.plan.plan import Step

FAMILIES = [k.name for k in kernels.ALL]
PARAMS = [
    pytest.param(name, marks=[pytest.mark.device, getattr(pytest.mark, name)]) for name in RUNTIMES
]


class Named(ReferenceBackend):
    """Computes in NumPy what the families would compute, one of them wrongly or not at all."""

    def __init__(self, wrong: str = "", refused: str = "") -> None:
        super().__init__()
        self.wrong, self.refused = wrong, refused

    def lower(self, step: Step, strict: bool = False) -> Lowered:
        kernel, _ = kernels.select(step, NullBackend().info)
        low = super().lower(step)
        if kernel.name == self.refused:
            raise DeviceError("could not build a kernel: the compiler crashed")
        if kernel.name == self.wrong:
            wrong: Any = [Off(n.op) for n in step.nodes]  # it quacks like an Op
            nodes = tuple(replace(n, op=o) for n, o in zip(step.nodes, wrong, strict=True))
            low = replace(low, step=Step(nodes, step.reads, step.writes))
        return low


class Off:
    """An op whose first result is off by a hundredth of its size."""

    def __init__(self, op: Any) -> None:
        self.op = op

    def ref(self, *arrays: Array) -> tuple[Array, ...]:
        first, *rest = self.op.ref(*arrays)
        return (first + np.asarray(np.abs(first).max() * 0.01, first.dtype), *rest)


@pytest.fixture(params=PARAMS)
def device_backend(request: pytest.FixtureRequest) -> Any:
    require_runtime(request.param)
    return open_backend(request.param)


@pytest.fixture
def store(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Quarantine:
    made = Quarantine(tmp_path)
    monkeypatch.setattr(selfcheck, "quarantine", lambda: made)
    monkeypatch.setattr(opencl, "quarantine", lambda: made)
    return made


def product() -> Graph:
    with Builder() as builder:
        x = builder.input(TensorType((5, 5)), "x")
        return builder.graph([neg(matmul(x, x))])


def test_every_family_has_cases_and_computes_them() -> None:
    assert sorted(CHECKED) == sorted(FAMILIES)
    for thorough in (True, False):
        for family in FAMILIES:
            _, graph = selfcheck._cases({family: selfcheck._samples(family, thorough)})
            _, lowered = selfcheck._planned(graph, NullBackend())
            assert family in {low.kernel for low in lowered}


@pytest.mark.parametrize("thorough", [True, False])
def test_sound_kernels_pass(thorough: bool) -> None:
    verdicts = self_check(Named(), thorough=thorough)
    assert [v.family for v in verdicts] == FAMILIES
    assert all(v.ok and v.kernels == fingerprint() for v in verdicts)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_that_computes_wrongly_is_named_with_the_numbers(family: str) -> None:
    verdicts = {v.family: v for v in self_check(Named(wrong=family))}
    assert [name for name, v in verdicts.items() if not v.ok] == [family]
    assert "instead of" in verdicts[family].reason
    assert "elements are wrong" in verdicts[family].reason


def test_a_family_that_cannot_be_built_is_named_and_the_others_are_checked() -> None:
    verdicts = {v.family: v for v in self_check(Named(refused="conv"))}
    assert [name for name, v in verdicts.items() if not v.ok] == ["conv"]
    assert "the compiler crashed" in verdicts["conv"].reason


def test_single_families_can_be_checked() -> None:
    assert [v.family for v in self_check(Named(), ["pool", "loops"])] == ["pool", "loops"]


def test_the_reference_needs_no_check() -> None:
    backend = ReferenceBackend()
    assert checked(backend) is backend


def test_devices_compute_all_families(device_backend: Any) -> None:
    verdicts = self_check(device_backend)
    assert [v for v in verdicts if not v.ok] == []


def test_the_first_use_checks_and_the_second_does_not(
    device_backend: Any, store: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked(device_backend)
    assert sorted(store.judged(device_backend.report)) == sorted(FAMILIES)

    def unwanted(*_: Any, **__: Any) -> list[Verdict]:
        raise AssertionError("checked again")

    monkeypatch.setattr(selfcheck, "self_check", unwanted)
    checked(device_backend)
    monkeypatch.setattr(selfcheck, "fingerprint", lambda: "other kernels")
    with pytest.raises(AssertionError, match="checked again"):
        checked(device_backend)


def test_a_family_that_fails_at_the_first_use_is_not_used(
    device_backend: Any, store: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Verdict("matmul", ok=False, reason="0 instead of 1", kernels=fingerprint())
    monkeypatch.setattr(selfcheck, "self_check", lambda *_, **__: [bad])
    checked(device_backend)
    assert set(device_backend.excluded) == {"matmul"}
    assert [v.reason for v in store.failed(device_backend.report)] == ["0 instead of 1"]
    with pytest.raises(DeviceError, match="matmul computed wrongly on it in its self-check"):
        compile_graph(product(), device_backend)


def test_quarantine_makes_another_family_do_the_work_and_says_so_once(
    device_backend: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Here the second family is the loops under another name."""

    class Special(Loops):
        name = "special"

    monkeypatch.setattr(kernels, "ALL", (Special(), *kernels.ALL))
    device_backend.excluded = {"special": Verdict("special", ok=False, reason="7 instead of 8")}
    with Builder() as builder:
        x = builder.input(TensorType((7,)), "x")
        graph = builder.graph([neg(x)])
    with caplog.at_level(logging.WARNING, "pocketgrad"):
        executable = compile_graph(graph, device_backend)
        compile_graph(graph, device_backend)
    assert [low.kernel for low in executable.lowered] == ["loops"]
    assert len(caplog.records) == 1
    said = caplog.records[0].getMessage()
    assert "'special' is not used" in said
    assert "'loops' replaces it" in said
    assert "7 instead of 8" in said
    feeds = {"x": np.arange(7, dtype=np.float32)}
    executable.run(feeds)
    np.testing.assert_array_equal(
        executable.read(graph.outputs[0].name), evaluate(graph, feeds)[graph.outputs[0]]
    )


def test_the_error_without_another_family_names_the_quarantine() -> None:
    info: DeviceInfo = NullBackend().info
    _, lowered = plan_graph(product(), NullBackend())
    with pytest.raises(DeviceError, match=r"no kernel for mat_mul.*: matmul computed wrongly"):
        kernels.select(lowered[0].step, info, {"matmul"})
