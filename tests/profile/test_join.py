"""Time by operation, layer, phase and step, by hand; gaps by what the host did."""

from __future__ import annotations

import numpy as np
import pytest
from tests.profile.made import MS, launch, profiled, timeline, trace

from pocketgrad.trace.model import Span
from pocketgrad.trace.profile import Work

CONV = launch("conv2d+relu", "features.0", ops=[("conv2d", 0.9), ("relu", 0.1)])
COPY = launch("cast", "features.0", work=Work.LAYOUT)
GRAD = launch("conv2d_grad", "features.0", "backward")
PLAN = [(0, 1 * MS, 5 * MS), (1, 5 * MS, 6 * MS), (2, 7 * MS, 9 * MS), (2, 9 * MS, 10 * MS)]


def test_times_are_shared_by_cost_and_the_rest_is_gaps() -> None:
    """4 ms of conv2d+relu are 3.6 and 0.4; 10 ms a step leave 1 + 1 ms of gaps."""
    found = profiled(timeline([CONV, COPY, GRAD], PLAN, 3, 10 * MS), trace())
    times = {(row.op, row.phase): row.median_ns / MS for row in found.ops}
    assert times == pytest.approx(
        {
            ("conv2d", "forward"): 3.6,
            ("relu", "forward"): 0.4,
            ("cast", "forward"): 1.0,
            ("conv2d_grad", "backward"): 3.0,
            ("gap", "gap"): 2.0,
        }
    )
    assert [row.op for row in found.ops][:2] == ["conv2d", "conv2d_grad"]
    assert {row.op: row.shared for row in found.ops} == {
        "conv2d": True, "relu": True, "cast": False, "conv2d_grad": False, "gap": False,
    }  # fmt: skip
    assert next(r for r in found.ops if r.op == "conv2d_grad").launches == 2
    assert next(r for r in found.ops if r.op == "conv2d").flops == 900
    phases = [(row.name, row.median_ns / MS) for row in found.phases]
    assert phases == [("forward", 5.0), ("backward", 3.0), ("gap", 2.0)]
    assert [(row.name, row.median_ns / MS) for row in found.layers] == [
        ("features.0", 8.0), ("gap", 2.0),
    ]  # fmt: skip


def test_every_table_adds_up_to_the_steps() -> None:
    found = profiled(timeline([CONV, COPY, GRAD], PLAN, 5, 10 * MS, discarded=2), trace())
    for rows in (found.ops, found.layers, found.phases):
        sums = np.sum([row.step_ns for row in rows], axis=0)
        assert sums.tolist() == [10 * MS] * 3


def test_a_gap_is_explained_by_what_the_host_did_meanwhile() -> None:
    """Of the gap from 6 to 7 ms the host loaded for 0.6 and uploaded for 0.3."""
    spans = [
        Span("load", "host", round(5.5 * MS), round(6.6 * MS)),
        Span("upload", "host", round(6.6 * MS), round(6.9 * MS)),
        Span("load", "elsewhere", 0, 10 * MS),
    ]
    ran = timeline([CONV, COPY, GRAD], PLAN, 1, 10 * MS)
    found = profiled(ran, trace(spans=spans))
    gaps = {row.scope: row.median_ns / MS for row in found.ops if row.work is Work.GAP}
    assert gaps == pytest.approx({"load": 0.6, "upload": 0.3, "other": 1.1})


def test_copy_and_layout_shares() -> None:
    upload = launch("upload x", "x", "input", Work.COPY)
    ran = timeline([upload, COPY, GRAD], [(0, 0, 2 * MS), (1, 2 * MS, 3 * MS)], 2, 10 * MS)
    metrics = {m.name: m.value for m in profiled(ran, trace()).metrics if not m.paper}
    assert metrics["copy share"] == pytest.approx(20)
    assert metrics["layout share"] == pytest.approx(10)
    assert metrics["device busy"] == pytest.approx(30)
    assert metrics["step time"] == pytest.approx(0.01)
    assert metrics["throughput"] == pytest.approx(200)


def test_warm_ups_are_in_the_timeline_and_not_in_the_statistics() -> None:
    found = profiled(timeline([GRAD], [(0, 0, MS)], 5, MS, discarded=3), trace())
    assert len(found.steps) == 5
    assert len(found.events) == 5
    assert len(found.ops[0].step_ns) == 2


def test_without_steps_there_is_an_empty_profile() -> None:
    found = profiled(timeline([GRAD], [], 0, MS), trace())
    assert found.ops == ()
    assert found.phases == ()
    assert found.metrics == ()
