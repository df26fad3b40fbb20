"""The examples of docs/howto/add-a-sampler.md work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "add-a-sampler.md"
SAMPLER, SAMPLING = re.findall(r"```python\n(.*?)```", HOWTO.read_text(), re.DOTALL)


def test_the_sampler_in_the_instructions_works(capsys) -> None:
    exec(compile(SAMPLER, str(HOWTO), "exec"), {"__name__": "example"})
    read, absent = capsys.readouterr().out.splitlines()
    assert read == "{'fan_example/CPU': 1200.0}"
    assert absent == "fan_example: not available: /sys/class/fan_example does not exist"


@pytest.mark.device
def test_the_sampling_in_the_instructions_works_on_this_machine(capsys) -> None:
    exec(compile(SAMPLING, str(HOWTO), "exec"), {"__name__": "example"})
    text = capsys.readouterr().out
    assert "of one core" in text
