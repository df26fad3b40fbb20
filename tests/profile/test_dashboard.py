"""`train --monitor`: sensors and progress on a terminal, from a recorded device and for real."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.helpers.training import small_data, small_net
from tests.telemetry.played import S, device

import pocketgrad as pg
from pocketgrad.profile.dashboard import Dashboard
from pocketgrad.telemetry.playback import Playback, Recording
from pocketgrad.train.session import Totals


def drawn(recording: Recording, at_ns: int = 0) -> str:
    """One drawing, with a clock that stands."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=160)
    shown = Dashboard(console, Playback(recording, lambda: at_ns).machine)
    shown.begin("training on tx2", 3, 10)
    shown.advance(1, 4, Totals(8.0, 16.0, 12.0), 1234.0)
    shown._monitor.wait_for_first(S)
    console.print(shown.view())
    shown.end()
    return out.getvalue()


def test_a_board_s_rails_and_temperatures_are_shown() -> None:
    text = drawn(device("jetson-tx2"))
    for word in ("epoch 2/3", "batch 4/10", "loss 0.5000", "accuracy 0.7500", "1,234 samples/s",
                 "VDD_IN 2.93 W", "GPU-therm 37.5 °C", "gp10b/utilisation"):  # fmt: skip
        assert word in text, word
    assert "VDD_SYS_CPU" not in text, "it is inside of VDD_IN"
    assert "power: not available" not in text


def test_a_machine_without_sensors_says_what_it_lacks() -> None:
    text = drawn(Recording({"/proc/version": "Linux\n"}, (), {"duration_ns": 9 * S}))
    for what in ("power", "temperature", "GPU", "CPU frequency"):
        assert f"{what}: not available" in text


def test_cores_are_the_share_since_the_last_drawing() -> None:
    shown = Dashboard(Console(file=io.StringIO()), Playback(device("jetson-tx2")).machine)
    shown._update_cores({"proc_stat/cpu0/busy": 100.0, "proc_stat/cpu0/idle": 0.0})
    shown._update_cores({"proc_stat/cpu0/busy": 130.0, "proc_stat/cpu0/idle": 70.0})
    assert shown.rows({})[0] == ("cores", "cpu0 30 %")


def test_training_with_it_goes_as_without(device: str) -> None:
    found = []
    for shown in (False, Dashboard(Console(file=io.StringIO()))):
        trainer = pg.Trainer(small_net(), device=device)
        history = trainer.fit(small_data(), epochs=2, batch=32, progress=shown)
        found.append([epoch.loss for epoch in history])
    assert found[0] == found[1]


@pytest.mark.parametrize("fails", [True])
def test_it_ends_with_training_that_fails(fails: bool) -> None:
    out = io.StringIO()
    shown = Dashboard(Console(file=out))
    trainer = pg.Trainer(small_net(), device="reference")
    with pytest.raises(Exception, match="batch"):
        trainer.fit([], epochs=1, batch=8, progress=shown)
    assert not any(thread.is_alive() for thread in shown._monitor._threads)
