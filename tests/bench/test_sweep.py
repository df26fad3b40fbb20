"""A suite goes on where it was cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pocketgrad.base.errors import DataError
from pocketgrad.bench.result import FORMAT
from pocketgrad.bench.suites import SUITES, TABLE, Row
from pocketgrad.bench.sweep import sweep

ROWS = (Row("lenet5", 32, 4), Row("mentee", 32, 1.8), Row("model1", 32, 25))


def result(speedup: float, interrupted: bool = False) -> dict[str, Any]:
    best = {"value": speedup, "low": speedup, "high": speedup, "device": "pocl:0",
            "variant": "eager", "memory": 0.5}  # fmt: skip
    return {
        "format": FORMAT,
        "interrupted": interrupted,
        "speedup": [best],
        "speedup_best_torch_fp32": speedup,
        "best_torch_fp32": best,
        "participants": [{"name": "torch:eager", "outcome": "ok"}],
    }


def test_a_cut_suite_goes_on_with_the_missing_rows(tmp_path: Path) -> None:
    asked: list[str] = []
    cut = True

    def measure(row: Row) -> dict[str, Any]:
        asked.append(row.model)
        return result(2.0 if row.model == "lenet5" else 8.0, cut and row.model == "mentee")

    found = sweep(ROWS, tmp_path, measure, lambda text: None)
    assert found["interrupted"]
    assert found["missing"] == 2
    cut = False
    found = sweep(ROWS, tmp_path, measure, lambda text: None)
    assert asked == ["lenet5", "mentee", "mentee", "model1"]
    assert not found["interrupted"]
    assert not found["missing"]
    assert abs(found["geometric_mean_convolutional"] - 4.0) < 1e-9  # model1 is none
    assert not list(tmp_path.glob("*.part"))


def test_a_foreign_file_is_not_taken_for_a_result(tmp_path: Path) -> None:
    (tmp_path / "lenet5-b32.json").write_text("{}")
    with pytest.raises(DataError, match="remove it to measure again"):
        sweep(ROWS, tmp_path, lambda row: result(1.0), lambda text: None)


def test_every_row_has_a_file_of_its_own() -> None:
    for rows in SUITES.values():
        assert len({row.workload.slug for row in rows}) == len(rows)
    assert len({row.model for row in TABLE}) == 14
