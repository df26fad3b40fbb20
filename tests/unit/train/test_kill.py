"""`kill -9` at random moments, then --resume, as often as it takes: the end is bit-identical."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pocketgrad.engine import checkpoint

SCRIPT = """
import sys
import pocketgrad as pg
from tests.helpers.training import sgd, small_data, small_net

device, folder, result = sys.argv[1:]
data = small_data(640, 32)
made = pg.Trainer(small_net(0.2), optimizer=sgd(), device=device)
try:
    made.resume(folder)
except pg.errors.CheckpointError as error:
    if "there is no checkpoint" not in str(error):
        raise
print("go", flush=True)
made.fit(data, 12, 16, data.test, progress=False, checkpoint=folder, checkpoint_every_s=0.01)
made.save(result)
"""
LIMIT_S = 120


def start(device: str, folder: Path, result: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", SCRIPT, device, str(folder), str(result)]
    root = Path(__file__).resolve().parents[3]
    return subprocess.Popen(arguments, cwd=root, stdout=subprocess.PIPE, text=True)


def wait_for_word(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == "go\n"


def newest(folder: Path) -> int:
    """How many batches the newest checkpoint has seen."""
    return max((checkpoint.number(path) for path in checkpoint.files(folder)), default=0)


def wait_for_batch(child: subprocess.Popen[str], number: int, folder: Path) -> None:
    end = time.monotonic() + LIMIT_S
    while newest(folder) < number:
        assert child.poll() is None, "it ended by itself"
        assert time.monotonic() < end, f"no checkpoint of batch {number}"
        time.sleep(0.001)


@pytest.mark.slow
def test_training_killed_at_random_moments_ends_the_same(device: str, tmp_path) -> None:
    with start(device, tmp_path / "whole", tmp_path / "whole.safetensors") as whole:
        assert whole.wait(LIMIT_S) == 0
    moments, folder = random.Random(7), tmp_path / "killed"
    result = tmp_path / "killed.safetensors"
    for further in (0, 25, 60, 5, 40):
        with start(device, folder, result) as child:
            wait_for_word(child)
            wait_for_batch(child, newest(folder) + further, folder)
            time.sleep(moments.uniform(0, 0.02))
            child.kill()
    assert not result.exists(), "killed too late: train longer"
    with start(device, folder, result) as child:
        assert child.wait(LIMIT_S) == 0
    assert result.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
