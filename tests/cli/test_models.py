"""`pocketgrad models`: every model with true counts, one model's layers, the papers' numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pocketgrad.cli.__main__ import main
from pocketgrad.zoo import MODELS
from pocketgrad.zoo.papers import PRINTED

COUNTS = Path(__file__).parents[1] / "golden" / "zoo" / "counts.txt"


def printed(capsys, *arguments: str):
    assert main(["models", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_model_is_listed_with_the_stored_counts(capsys) -> None:
    found = {m["name"]: m for m in printed(capsys)["models"]}
    assert list(found) == list(MODELS)
    for line in COUNTS.read_text().splitlines()[1:]:
        name, parameters, _, flops, activations, _ = line.replace(",", "").split()
        about = found[name]
        assert about["parameters"] == int(parameters)
        assert about["flops_per_sample"] == int(flops)
        assert about["activation_bytes"] == int(activations)


def test_a_step_takes_at_least_twice_and_about_three_times_the_arithmetic(capsys) -> None:
    for about in printed(capsys)["models"]:
        ratio = about["flops_per_step"] / about["flops_per_sample"]
        one_layer = about["name"].endswith(("d1-w64", "d1-w128", "d1-w256", "d1-w512"))
        assert (1.9 if one_layer or about["name"].startswith("model") else 2.4) < ratio < 4, about


def test_the_list_is_a_table_for_people(capsys) -> None:
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in MODELS)
    assert "61.7 k" in out


def test_a_model_is_shown_layer_by_layer(capsys) -> None:
    found = printed(capsys, "show", "lenet5")
    assert sum(layer["parameters"] for layer in found["layers"]) == 61_706
    assert found["options"] == {"classes": 10, "channels": 1}
    assert main(["models", "show", "lenet5"]) == 0
    out = capsys.readouterr().out
    for word in ("features.3", "Conv2d", "float32[1,16,10,10]", "2,416", "61,706 parameters"):
        assert word in out


def test_the_numbers_of_the_papers_stand_beside_ours(capsys) -> None:
    assert len(printed(capsys, "--papers")["papers"]) == len(PRINTED)
    assert main(["models", "--papers"]) == 0
    out = capsys.readouterr().out
    for word in ("mentee", "26.89M", "misprint", "Liu et al."):
        assert word in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "lenett"], "did you mean lenet5"),
        (["lenet5"], "ask `pocketgrad models show NAME`"),
        (["show"], "ask `pocketgrad models show NAME`"),
        (["show", "lenet5", "--papers"], "leave out 'show NAME'"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys) -> None:
    assert main(["models", *arguments]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert message in errors[0]
