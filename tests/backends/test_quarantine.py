"""Verdicts on kernel families are kept by device and driver."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.drivers import POCL

from pocketgrad.backends.quarantine import Quarantine, Verdict

GOOD = Verdict("pointwise", ok=True, kernels="a1")
BAD = Verdict("conv", ok=False, reason="max error 0.5", kernels="b2")


@pytest.fixture
def store(tmp_path: Path) -> Quarantine:
    return Quarantine(tmp_path / "quarantine", now=lambda: "2026-01-02T03:04:05+00:00")


def test_a_device_never_checked_has_no_verdicts(store: Quarantine) -> None:
    assert store.judged(POCL) == {}


def test_verdicts_come_back_with_the_time_they_were_made(store: Quarantine) -> None:
    store.record(POCL, [GOOD, BAD])
    judged = store.judged(POCL)
    assert list(judged) == ["conv", "pointwise"]
    assert judged["conv"] == dataclasses.replace(BAD, checked="2026-01-02T03:04:05+00:00")
    assert [verdict.family for verdict in store.failed(POCL)] == ["conv"]


def test_a_later_verdict_replaces_the_one_on_its_family_only(store: Quarantine) -> None:
    store.record(POCL, [GOOD, BAD])
    store.record(POCL, [dataclasses.replace(BAD, ok=True, reason="")])
    assert [verdict.ok for verdict in store.judged(POCL).values()] == [True, True]


@pytest.mark.parametrize("field", ["driver", "name", "platform_version"])
def test_another_driver_or_device_is_judged_anew(store: Quarantine, field: str) -> None:
    store.record(POCL, [BAD])
    other: dict[str, Any] = {field: "other"}
    assert store.judged(dataclasses.replace(POCL, **other)) == {}


@pytest.mark.parametrize("text", ["", '{"verdicts": [{"family": "x"}, 3, {"colour": 1}]}'])
def test_a_damaged_file_counts_as_not_checked(store: Quarantine, text: str) -> None:
    store.record(POCL, [BAD])
    store.file(POCL).write_text(text)
    assert store.judged(POCL) == {}


def test_forgotten_verdicts_are_gone(store: Quarantine) -> None:
    store.record(POCL, [BAD])
    store.forget(POCL)
    store.forget(POCL)
    assert store.failed(POCL) == ()
