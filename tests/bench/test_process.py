"""Participants as processes: how they answer and how they end; and one comparison for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pocketgrad.bench import remote as remote_module
from pocketgrad.bench.api import Participant, Variant
from pocketgrad.bench.compare import compare, participants
from pocketgrad.bench.remote import OutError, Remote
from pocketgrad.bench.runner import Settings
from pocketgrad.bench.task import NotWrittenError, Workload
from pocketgrad.bench.worker import outcome_of

ECHO = "import sys\nfor line in sys.stdin:\n    print('{\"loss\": 1}', flush=True)"


def remote(code: str, monkeypatch: pytest.MonkeyPatch, timeout_s: float = 20.0) -> Remote:
    """A process that runs this code in place of a worker."""
    monkeypatch.setattr(remote_module, "BOOT", code)
    return Remote(Participant("torch", Variant("eager", "")), timeout_s=timeout_s)


def test_a_process_answers_each_command(monkeypatch: pytest.MonkeyPatch) -> None:
    process = remote(ECHO, monkeypatch)
    assert process.ask("block", steps=2) == {"loss": 1}
    assert process.pid
    process.close()
    assert process.pid is None


@pytest.mark.parametrize(
    ("code", "outcome", "reason"),
    [
        ("import os; os.kill(os.getpid(), 11)", "crashed", "Segmentation fault"),
        ("import os; os.kill(os.getpid(), 9)", "out of memory", "killed"),
        ("import nothing_of_this_name", "crashed", "No module named 'nothing_of_this_name'"),
        ("import time; time.sleep(60)", "hangs", "no answer within 0.5 s"),
    ],
)
def test_the_end_of_a_process_is_an_outcome(
    monkeypatch: pytest.MonkeyPatch, code: str, outcome: str, reason: str
) -> None:
    process = remote(code, monkeypatch, 0.5 if outcome == "hangs" else 20.0)
    with pytest.raises(OutError) as caught:
        process.ask("load")
    assert caught.value.outcome == outcome
    assert reason in caught.value.reason
    process.close()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotWrittenError("no LSTM"), "not written"),
        (ImportError("No module named 'jax'"), "absent"),
        (MemoryError(), "out of memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out of memory"),
        (ValueError("anything else"), "crashed"),
    ],
)
def test_errors_become_outcomes(error: Exception, outcome: str) -> None:
    assert outcome_of(error) == outcome


@pytest.mark.peer("torch")
@pytest.mark.device
@pytest.mark.slow
def test_lenet_beside_pytorch_ends_with_a_speedup(tmp_path: Path) -> None:
    takers = participants(["cpu"], ["torch:eager", "torch:bf16"])
    found = compare(Workload("lenet5", 4), takers, Settings(0.2, 2, 2, 1))
    assert [p["outcome"] for p in found["participants"]] == ["ok"] * 3
    assert found["reference"] == "torch:eager"
    (speedup,) = found["speedup"]
    assert (speedup["device"], speedup["peer"], speedup["variant"]) == ("cpu", "torch", "eager")
    assert found["speedup_best_torch_fp32"] == speedup["value"] > 0
    ours: dict[str, Any] = found["participants"][0]
    assert len(ours["blocks"]) == 2
    assert ours["facts"]["launches"] > 0
    assert ours["peak_nbytes"] > ours["idle_nbytes"] > 0
    assert len(found["ceilings"]["cpu"]) == 2
    json.dumps(found)
