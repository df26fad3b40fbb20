"""The scripts that record that models learn: their tables are whole, and invent no result."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

import learning
import learning_report
from pocketgrad import data, tasks, zoo

ROOT = Path(__file__).parents[2]


def found(value: float) -> dict[str, Any]:
    wanted = asdict(learning.EXPERIMENTS["lenet5-mnist"])
    return {
        "experiment": wanted, "device": "pocl", "peak_bytes": 1e6,
        "result": {"test_accuracy": value}, "history": [{"loss": 2.0}, {"loss": 1.0}],
    }  # fmt: skip


def test_experiments_are_of_models_and_data_that_exist() -> None:
    for experiment in learning.EXPERIMENTS.values():
        task = tasks.task_of(zoo.card(experiment.model))
        known = data.ENVIRONMENTS if card_acts(experiment.model) else data.ALL
        assert experiment.data in known
        chosen = task.optimizer(experiment.optimizer or task.optimizer_name, experiment.lr)
        assert chosen.lr > 0


def card_acts(model: str) -> bool:
    return zoo.card(model).task == "act"


@pytest.mark.parametrize(("value", "reached"), [(0.991, "yes"), (0.98, "no")])
def test_the_page_states_what_was_reached_and_what_was_not_run(value, reached, tmp_path) -> None:
    results = tmp_path / "learning"
    results.mkdir()
    (results / "lenet5-mnist.json").write_text(json.dumps(found(value)))
    learning_report.write(tmp_path / "learning.md", results)
    lines = (tmp_path / "learning.md").read_text().splitlines()
    rows = {ln.split("|")[1].strip(): ln for ln in lines if ln.startswith("|")}
    assert f"| {reached} |" in rows["[lenet5-mnist](#lenet5-mnist)"]
    assert sum("not run" in ln for ln in rows.values()) == len(learning.EXPERIMENTS) - 1
    assert (results / "lenet5-mnist.svg").read_text().count("polyline") == 1


def test_no_model_is_missing_in_the_table_of_the_zoo() -> None:
    loader = SourceFileLoader("zoo_table", str(ROOT / "tools" / "zoo-table"))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    script = module_from_spec(spec)
    loader.exec_module(script)
    cell = {"gradients": 1e-6, "step_s": 0.25, "peak_bytes": 2e6}
    text = script.table({"lenet5 pocl": cell, "vgg19 intel": {"error": "DeviceError: no"}})
    rows = {ln.split("|")[1].strip(): ln for ln in text.splitlines() if ln.startswith("|")}
    assert set(zoo.MODELS) <= set(rows)
    assert "| pocl | 1.0e-06 | not measured | 0.2500 s |" in rows["lenet5"]
    assert "fails: DeviceError: no" in rows["vgg19"]
