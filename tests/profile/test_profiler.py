"""`profile(trainer)` on every device: what it sees is what ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.training import sgd, small_data, small_net
from tests.profile.made import joules

import pocketgrad as pg
from pocketgrad.backends.null import NullBackend
from pocketgrad.base.errors import DataError, DeviceError, SettingError
from pocketgrad.profile import load as load_profile
from pocketgrad.trace.profile import Profile, Work, to_json

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "sysfs"
BATCH = 32


profile: Any = pg.profile  # a module that can be called, which mypy does not know


def trained(device: str, epochs: int = 3, discard: int = 3, **options) -> tuple[Any, Profile]:
    trainer = pg.Trainer(small_net(), optimizer=sgd(), device=device, **options)
    with profile(trainer, discard=discard) as p:
        trainer.fit(small_data(), epochs=epochs, batch=BATCH, progress=False)
    return p, p.result


def test_steps_launches_and_uploads_are_those_that_ran(device: str) -> None:
    """96 samples in batches of 32 are three steps an epoch."""
    _, found = trained(device)
    assert [s.number for s in found.steps] == list(range(1, 10))
    assert [s.discarded for s in found.steps] == [True] * 3 + [False] * 6
    names = [launch.name for launch in found.launches]
    if device != "reference":  # NumPy copies without a command
        assert {"upload x", "upload y"} <= set(names)
    for step in found.steps:
        ran = found.events.of_step(step.number)
        assert step.start_ns <= ran.start_ns.min()
        assert ran.end_ns.max() == step.end_ns
        assert 0 < step.busy_ns <= step.duration_ns
        rows = [found.launches[i] for i in ran.launch]
        assert sum(row.kernel != "upload" for row in rows) == len(
            [row for row in found.launches if row.kernel != "upload"]
        )
    assert {row.phase for row in found.launches} <= {"input", "forward", "backward", "update"}
    assert [row.name for row in found.phases if row.name in ("forward", "backward", "update")] == [
        "forward", "backward", "update",
    ]  # fmt: skip
    assert found.metadata["batch"] == BATCH
    assert found.metadata["timing"] == ("host clock" if device == "reference" else "device events")


def test_times_of_ops_and_gaps_add_up_to_the_steps(device: str) -> None:
    _, found = trained(device)
    durations = [step.duration_ns for step in found.measured_steps]
    for rows in (found.ops, found.layers, found.phases):
        assert np.sum([row.step_ns for row in rows], axis=0) == pytest.approx(durations, rel=0.02)
    busy = [step.busy_ns for step in found.measured_steps]
    working = [row.step_ns for row in found.ops if row.work is not Work.GAP]
    assert np.sum(working, axis=0) == pytest.approx(busy, rel=0.02)


def test_what_the_host_did_is_there_and_training_is_not_changed(device: str) -> None:
    p, found = trained(device)
    names = {span.name for span in found.trace.spans}
    assert {"load", "upload", "enqueue", "read", "wait"} <= names
    plain = pg.Trainer(small_net(), optimizer=sgd(), device=device)
    plain.fit(small_data(), epochs=3, batch=BATCH, progress=False)
    watched = p.trainer.parameters()
    for name, array in plain.parameters().items():
        np.testing.assert_array_equal(watched[name], array)
    assert plain.session.watch is None
    assert p.trainer.session.watch is None


def test_memory_in_use_is_never_more_than_allocated(device: str) -> None:
    p, found = trained(device)
    assert found.memory is not None
    assert 0 < found.memory.peak_nbytes <= found.memory.allocated_nbytes
    summary = p.trainer.plan(BATCH, small_data())
    assert found.memory.allocated_nbytes >= summary.peak_nbytes
    own = [row for row in found.launches if row.kernel != "upload"]
    assert len(found.memory.nbytes) == len(own)
    assert sum(row.flops for row in own) == pytest.approx(summary.flops, rel=1e-3)
    assert sum(row.nbytes for row in own) == pytest.approx(summary.nbytes, rel=1e-3)


def test_a_profile_is_saved_and_read_back(device: str, tmp_path) -> None:
    p, found = trained(device)
    written = p.save(tmp_path / "out").paths
    assert {tmp_path / "out" / name for name in ("profile.json", "report.html")} <= set(written)
    assert to_json(load_profile(tmp_path / "out")) == to_json(found)
    text = p.table()
    for word in ("forward", "backward", "update", "gap", "operation", "sampling took"):
        assert word in text
    assert not profile.compare(found, found).ops[0].significant


def test_accumulation_has_the_launches_of_both_plans() -> None:
    _, found = trained("reference", accumulate=3)
    assert len(found.steps) == 9
    assert sum("update" in {op.phase for op in row.ops} for row in found.launches) >= 1


def test_evaluation_inside_the_block_belongs_to_no_step() -> None:
    trainer = pg.Trainer(small_net(), device="reference")
    data = small_data()
    with profile(trainer, discard=0) as p:
        trainer.fit(data, epochs=1, batch=BATCH, progress=False)
        trainer.evaluate(data.test)
        trainer.fit(data, epochs=1, batch=BATCH, progress=False)
    steps = p.result.steps
    assert len(steps) == 6
    assert steps[3].start_ns > steps[2].end_ns, "the evaluation lies between"
    assert steps[4].start_ns == steps[3].end_ns


def test_an_exception_keeps_the_steps_before_it() -> None:
    trainer = pg.Trainer(small_net(), device="reference")
    profiler = profile(trainer, discard=0)
    x, y = np.zeros((4, 1, 4, 4), np.float32), np.zeros(4, np.int32)

    def interrupted() -> None:
        with profiler:
            trainer.step(x, y)
            trainer.step(x, y)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(profiler.result.steps) == 2


def test_few_steps_leave_one_to_measure_and_a_warning() -> None:
    _, found = trained("reference", epochs=1)
    assert [s.discarded for s in found.steps] == [True, True, False]
    assert any("1 of 3 steps were measured" in w for w in found.warnings)


def test_a_recorded_device_s_sensors_stand_in(tmp_path) -> None:
    trainer = pg.Trainer(small_net(), device="reference")
    with profile(trainer, device_tree=FIXTURES / "jetson-tx2") as p:
        trainer.fit(small_data(), epochs=20, batch=BATCH, progress=False)
    (total,) = [t for t in p.result.energy if t.main]
    assert total.channel == "ina3221/VDD_IN"
    assert joules(p.result.ops) == pytest.approx(total.figure.joules, rel=0.01)
    assert not any(a.name == "power" for a in p.result.absent)


def test_mistakes_are_told(tmp_path) -> None:
    trainer = pg.Trainer(small_net(), device="reference")
    profiler = profile(trainer)
    with pytest.raises(SettingError, match="there is no profile yet"):
        profiler.table()
    with profiler:
        pass
    assert profiler.result.steps == ()
    with pytest.raises(SettingError, match="has measured already"):
        profiler.__enter__()
    with pytest.raises(SettingError, match="discard -1"):
        profile(trainer, discard=-1)
    with pytest.raises(DataError, match="no recorded device"):
        profile(trainer, device_tree=tmp_path)
    with pytest.raises(DataError, match=r"is no profile: there is no profile\.json"):
        load_profile(tmp_path)
    (tmp_path / "profile.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        load_profile(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match="cannot be written to"):
        profiler.save(tmp_path / "file" / "sub")


def test_a_backend_that_keeps_no_times_is_measured_by_the_host(monkeypatch) -> None:
    from pocketgrad.backends.reference import ReferenceBackend

    def refuse(self: ReferenceBackend) -> None:
        raise DeviceError("this driver refuses a queue with profiling")

    monkeypatch.setattr(ReferenceBackend, "profiling", refuse)
    _, found = trained("reference")
    assert len(found.measured_steps) == 6
    assert all(s.duration_ns > 0 for s in found.steps)
    assert len(found.events) == 0
    assert found.ops == ()
    reasons = {a.name: a.reason for a in found.absent}
    assert reasons["launch times"] == "this driver refuses a queue with profiling"


def test_the_null_backend_has_nothing_to_measure() -> None:
    trainer = pg.Trainer(small_net(), device=NullBackend())
    with pytest.raises(DeviceError, match="cannot compute"), profile(trainer):
        trainer.fit(small_data(), epochs=1, batch=BATCH, progress=False)


def test_a_profile_of_hours_is_bounded(monkeypatch) -> None:
    from pocketgrad.profile import gather

    monkeypatch.setattr(gather, "EVENTS", 100)
    _, found = trained("reference", epochs=10)
    assert len(found.events) < 200
    assert any("the profile ends after step" in w for w in found.warnings)
