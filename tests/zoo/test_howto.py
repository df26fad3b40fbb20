"""The examples of docs/howto/add-a-model.md work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from tests.helpers.describe import outcome

from pocketgrad.zoo.registry import _cards

HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "add-a-model.md"


def test_the_example_in_the_instructions_works(monkeypatch):
    monkeypatch.setattr("pocketgrad.zoo.registry._cards", {})
    block, _ = re.findall(r"```python\n(.*?)```", HOWTO.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(block, str(HOWTO), "exec"), names)
    net = names["tiny"]()
    assert net.parameter_count() == 898
    x = np.ones((2, 3, 32, 32), np.float32)
    assert outcome(net, x).outputs[0].shape == (2, 10)
    assert "tiny" not in _cards


def test_the_reading_of_costs_in_the_instructions_works(capsys):
    _, reading = re.findall(r"```python\n(.*?)```", HOWTO.read_text(), re.DOTALL)
    exec(compile(reading, str(HOWTO), "exec"), {"__name__": "example"})
    multiply_adds = int(capsys.readouterr().out.split()[0])
    assert 1.2e9 < multiply_adds < 1.4e9
