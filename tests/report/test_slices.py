"""Slices nest, flows join layers with their launches, and a long run stays bounded."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.sample_profile import sample

from pocketgrad.report import slices
from pocketgrad.report.slices import Slice, Track, host_lanes, keep_steps, launch_lanes, tracks
from pocketgrad.trace.model import Span
from pocketgrad.trace.profile import Events, StepRow


def crossings(made: list[Slice]) -> list[tuple[str, str]]:
    """Pairs of slices of which one begins within the other and ends after it."""
    found: list[tuple[str, str]] = []
    opened: list[Slice] = []
    for piece in made:
        while opened and opened[-1].end_ns <= piece.start_ns:
            opened.pop()
        if opened and piece.end_ns > opened[-1].end_ns:
            found.append((opened[-1].name, piece.name))
        opened.append(piece)
    return found


def by_name(made: list[Track], name: str) -> Track:
    return next(track for track in made if track.name == name)


@pytest.mark.parametrize("queues", [1, 2])
def test_slices_of_every_track_nest(queues: int) -> None:
    made, note = tracks(sample(queues=queues))
    assert note == ""
    names = [track.name for track in made]
    launches = [f"queue {q}{by}" for q in range(queues) for by in (" by layer", "")]
    assert names == ["steps", *launches, "host"]
    assert [crossings(list(track.slices)) for track in made] == [[] for _ in names]


def test_a_phase_holds_its_layers_and_each_flow_leads_from_a_layer_to_a_launch_in_it() -> None:
    made, _ = tracks(sample(steps=1, warmups=0))
    layers, launches = by_name(made, "queue 0 by layer").slices, by_name(made, "queue 0").slices
    assert [s.name for s in layers if "step" in s.args] == ["forward", "backward", "update"]
    assert "features.3" in [s.name for s in layers]
    targets = {s.flow_in: s for s in launches if s.flow_in}
    pairs = [(layer, targets[flow]) for layer in layers for flow in layer.flows_out]
    assert len(pairs) == len(targets) == 14
    for layer, launch in pairs:
        assert layer.start_ns <= launch.start_ns <= launch.end_ns <= layer.end_ns
        assert launch.args["layer"] in {layer.name, ""}


def test_a_fused_launch_shows_its_operations_as_shares_that_fill_it() -> None:
    made, _ = tracks(sample(steps=1, warmups=0))
    pieces = list(by_name(made, "queue 0").slices)
    at = next(i for i, s in enumerate(pieces) if s.name == "conv2d+add+relu")
    parts = pieces[at + 1 : at + 4]
    assert [s.name for s in parts] == ["conv2d", "add", "relu"]
    assert [s.args["share"] for s in parts] == pytest.approx([0.8, 0.1, 0.1])
    assert (parts[0].start_ns, parts[-1].end_ns) == (pieces[at].start_ns, pieces[at].end_ns)
    assert "not measured" in str(parts[0].args["known by"])


def test_launches_that_overlap_within_a_queue_get_lanes() -> None:
    profile = sample(steps=1, warmups=0)
    columns = {name: getattr(profile.events, name).copy() for name in Events.__slots__}
    columns["end_ns"][0] = columns["end_ns"][2]  # runs on while the next two begin and end
    lanes = launch_lanes(dataclasses.replace(profile, events=Events(**columns)), frozenset({0}))
    assert list(lanes) == ["queue 0", "queue 0 (2)"]
    assert sum(len(lane) for lane in lanes.values()) == 14


def test_of_a_long_run_only_some_steps_show_their_launches_and_it_is_said() -> None:
    profile = sample(steps=50, warmups=0)
    kept = keep_steps(profile, 14 * 10)
    assert sorted(kept.steps) == list(range(0, 50, 5))
    assert "only every 5th step (10 of them)" in kept.note
    made, note = tracks(profile, most_launches=14 * 10)
    assert note == kept.note
    assert len(by_name(made, "steps").slices) == 50
    assert sum(1 for s in by_name(made, "queue 0").slices if s.flow_in) == 14 * 10


def test_one_step_is_kept_even_when_it_alone_is_too_much() -> None:
    assert keep_steps(sample(steps=3), 5).steps == {0}


def test_of_very_many_steps_neighbours_are_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MOST_STEPS", 4)
    rows = tuple(StepRow(i, 10 * i, 10 * i + 10, 7, False) for i in range(10))
    profile = dataclasses.replace(sample(steps=1, warmups=0), steps=rows)
    made = by_name(tracks(profile)[0], "steps").slices
    assert [s.name for s in made] == ["steps 0–2", "steps 3–5", "steps 6–8", "steps 9–9"]
    assert made[0].args["busy_ns"] == 21


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=40))
def test_host_spans_of_any_kind_nest_within_their_lane(pairs: list[tuple[int, int]]) -> None:
    spans = [Span(f"s{i}", "host", start, start + n) for i, (start, n) in enumerate(pairs)]
    lanes = host_lanes(spans)
    assert sum(len(lane) for lane in lanes.values()) == len(spans)
    for lane in lanes.values():
        assert not crossings([Slice(s.name, s.start_ns, s.end_ns) for s in lane])


def test_a_profile_without_launches_has_tracks_of_what_there_is() -> None:
    profile = sample(steps=2, warmups=0)
    empty = Events(*(np.empty(0, np.int64) for _ in Events.__slots__))
    made, note = tracks(dataclasses.replace(profile, events=empty))
    assert ([t.name for t in made], note) == (["steps", "host"], "")
