"""All files of a profile are written; one whose package is missing is told, with how to get it."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.sample_profile import sample

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.report import exporters, page_events, slices, tables
from pocketgrad.trace.profile import from_json


def test_all_files_are_written_and_said_before(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("perfetto")
    told: list[str] = []
    saved = exporters.save(sample(steps=3), tmp_path / "new" / "folder", tell=told.append)
    assert told == [e.file for e in exporters.ALL] == [p.name for p in saved.paths]
    assert saved.absent == ()
    assert all(path.stat().st_size > 100 for path in saved.paths)


def test_a_missing_package_leaves_out_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    saved = exporters.save(sample(steps=1, warmups=0), tmp_path)
    reasons = {absent.name: absent.reason for absent in saved.absent}
    assert sorted(reasons) == [
        "launches.parquet",
        "ops.parquet",
        "samples.parquet",
        "trace.pftrace",
    ]
    assert reasons["trace.pftrace"].endswith("pip install 'pocketgrad[perfetto]'")
    assert (tmp_path / "trace.json").exists()
    assert not (tmp_path / "trace.pftrace").exists()


def test_only_what_was_named_is_written_and_an_unknown_name_is_told(tmp_path: Path) -> None:
    exporters.save(sample(steps=1, warmups=0), tmp_path, only=["ops.csv"])
    assert [p.name for p in tmp_path.iterdir()] == ["ops.csv"]
    with pytest.raises(UnknownNameError, match=r"no file of a profile is named 'opz.csv'"):
        exporters.save(sample(steps=1, warmups=0), tmp_path, only=["opz.csv"])


def test_the_json_is_the_profile(tmp_path: Path) -> None:
    profile = sample(steps=2)
    exporters.save(profile, tmp_path, only=["profile.json"])
    back = from_json(json.loads((tmp_path / "profile.json").read_text()))
    assert back.launches == profile.launches
    assert back.steps == profile.steps
    assert back.events.start_ns.tolist() == profile.events.start_ns.tolist()


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_a_row_of_launches_is_one_launch_of_one_step() -> None:
    profile = sample(steps=2)
    found = rows(tables.csv_bytes(tables.launches(profile)))
    assert len(found) == 28
    first, event = found[0], next(iter(profile.events))
    assert (first["name"], first["phase"], first["queue"]) == ("cast+mul", "forward", "queue 0")
    assert int(first["end_ns"]) - int(first["start_ns"]) == event.end_ns - event.start_ns
    assert first["fused_ops"] == "2"


def test_what_is_not_known_is_an_empty_cell() -> None:
    with_power = rows(tables.csv_bytes(tables.ops(sample())))
    without = rows(tables.csv_bytes(tables.ops(sample(power=False))))
    assert {row["energy_known_by"] for row in with_power} == {"attributed"}
    assert {row["energy_j"] for row in without} == {""}
    assert sum(float(row["energy_j"]) for row in with_power) == pytest.approx(
        sum(r.energy.joules or 0 for r in sample().ops if r.energy)
    )


def test_samples_are_raw_with_their_units() -> None:
    profile = sample(steps=2)
    found = rows(tables.csv_bytes(tables.samples(profile)))
    assert len(found) == sum(len(s) for s in profile.trace.series.values())
    power = [row for row in found if row["channel"] == "rail/VDD_IN"]
    assert {row["unit"] for row in power} == {"W"}
    assert float(power[0]["value"]) == profile.trace.series["rail/VDD_IN"].values[0]


@pytest.mark.parametrize("name", ["launches", "ops", "samples"])
def test_parquet_holds_what_csv_holds(name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = getattr(tables, name)(sample(steps=2, power=False))
    found = parquet.read_table(pa.BufferReader(tables.parquet_bytes(columns)))
    assert found.to_pydict() == {key: list(values) for key, values in columns.items()}


def test_the_code_in_the_instructions_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    howto = Path(__file__).parents[2] / "docs" / "howto" / "read-a-profile.md"
    (code,) = re.findall(r"```python\n(.*?)```", howto.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    named: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, str(howto), "exec"), named)
    named["keep"](sample(steps=1))
    assert (tmp_path / "profiles" / "today" / "report.html").exists()
    assert "ops.csv" in capsys.readouterr().out
    for limit in (slices.MOST_LAUNCHES, page_events.MOST_LAUNCHES, slices.MOST_STEPS):
        assert f"{limit:,}".replace(",", " ") in howto.read_text()
