"""Perfetto's own schema reads our trace back; Chrome's JSON holds the same; both stay bounded."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.helpers.sample_profile import START, sample

from pocketgrad.report import chrome, perfetto, slices
from pocketgrad.trace.profile import Profile

pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


class Parsed:
    """A trace as a viewer would see it: names resolved, slices closed, by track."""

    def __init__(self, content: bytes) -> None:
        self.trace = pb2.Trace.FromString(content)
        self.tracks: dict[int, Any] = {}
        self.slices: dict[str, list[dict[str, Any]]] = {}
        self.counters: dict[str, list[tuple[int, float]]] = {}
        self._names: dict[tuple[str, int], str] = {}
        opened: dict[int, list[dict[str, Any]]] = {}
        for packet in self.trace.packet:
            assert packet.trusted_packet_sequence_id  # or viewers drop interned names
            self._intern(packet.interned_data)
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            elif packet.HasField("track_event"):
                self._event(packet, opened.setdefault(packet.track_event.track_uuid, []))
        assert not any(opened.values()), "a slice was never closed"

    def _intern(self, interned: Any) -> None:
        for kind in ("event_names", "debug_annotation_names", "debug_annotation_string_values"):
            for entry in getattr(interned, kind):
                text = entry.str.decode() if kind.endswith("values") else entry.name
                assert (kind, entry.iid) not in self._names
                self._names[kind, entry.iid] = text

    def _event(self, packet: Any, opened: list[dict[str, Any]]) -> None:
        event, t = packet.track_event, packet.timestamp
        name = self.tracks[event.track_uuid].name  # a descriptor comes before its events
        if event.type == event.TYPE_COUNTER:
            self.counters.setdefault(name, []).append((t, event.double_counter_value))
        elif event.type == event.TYPE_SLICE_BEGIN:
            found = {
                "name": self._names["event_names", event.name_iid],
                "start": t,
                "parent": opened[-1]["name"] if opened else "",
                "out": list(event.flow_ids),
                "in": list(event.terminating_flow_ids),
                "args": dict(map(self._argument, event.debug_annotations)),
            }
            if opened:
                assert t >= opened[-1]["start"]
            opened.append(found)
            self.slices.setdefault(name, []).append(found)
        else:
            closed = opened.pop()
            assert t >= closed["start"]
            closed["end"] = t

    def _argument(self, note: Any) -> tuple[str, Any]:
        value = getattr(note, note.WhichOneof("value"))
        if note.HasField("string_value_iid"):
            value = self._names["debug_annotation_string_values", value]
        return self._names["debug_annotation_names", note.name_iid], value


@pytest.fixture(scope="module")
def profile() -> Profile:
    return sample(steps=6, queues=2)


@pytest.fixture(scope="module")
def parsed(profile: Profile) -> Parsed:
    return Parsed(perfetto.render(profile))


def test_launches_are_back_with_their_times_and_what_they_are(parsed: Parsed, profile) -> None:
    launches = [s for q in (0, 1) for s in parsed.slices[f"queue {q}"] if s["in"]]
    assert len(launches) == len(profile.events)
    starts = {(s["start"], s["end"]) for s in launches}
    events = profile.events
    assert starts == set(zip(events.start_ns.tolist(), events.end_ns.tolist(), strict=True))
    conv = next(s for s in launches if s["name"] == "conv2d+add+relu")
    assert conv["args"] == {
        "step": 0,
        "kernel": "conv2d",
        "layer": "features.0",
        "phase": "forward",
        "work": "compute",
        "flops": 80_000_000,
        "bytes": 3_200_000,
        "waited_ns": conv["start"] - (START + 20_000),
    }


def test_layers_are_in_phases_and_fused_operations_in_launches(parsed: Parsed) -> None:
    layers = {(s["name"], s["parent"]) for s in parsed.slices["queue 0 by layer"]}
    assert {("forward", ""), ("features.3", "forward"), ("features.3", "backward")} <= layers
    ops = {(s["name"], s["parent"]) for s in parsed.slices["queue 0"]}
    assert ("relu", "conv2d+add+relu") in ops


def test_every_flow_leads_from_one_layer_to_one_launch(parsed: Parsed) -> None:
    pieces = [s for found in parsed.slices.values() for s in found]
    begun = Counter(flow for s in pieces for flow in s["out"])
    ended = Counter(flow for s in pieces for flow in s["in"])
    assert begun == ended
    assert len(begun) == 6 * 14
    assert set(begun.values()) == {1}


def test_counters_carry_units_and_values(parsed: Parsed, profile: Profile) -> None:
    counters = [t for t in parsed.tracks.values() if t.HasField("counter")]
    units = {t.name: t.counter.unit_name or t.counter.unit for t in counters}
    assert units["rail/VDD_IN"] == "W"
    assert units["thermal/soc"] == "degC"
    assert units["cpu0"] == "%"
    assert units["process/resident"] == pb2.CounterDescriptor.UNIT_SIZE_BYTES
    assert all(units.values())
    power = profile.trace.series["rail/VDD_IN"]
    told = list(zip(power.t_ns.tolist(), power.values.tolist(), strict=True))
    assert parsed.counters["rail/VDD_IN"] == told


def test_tracks_are_in_two_groups_and_the_metadata_is_there(parsed: Parsed) -> None:
    groups = {t.uuid: t.process.process_name for t in parsed.tracks.values() if t.process.pid}
    assert sorted(groups.values()) == ["samples", "training"]
    parents = {groups.get(t.parent_uuid) for t in parsed.tracks.values() if not t.process.pid}
    assert parents == {"samples", "training"}
    (about,) = parsed.slices["about this profile"]
    assert about["args"]["model"] == "sample_cnn"


def test_traces_of_an_hour_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MOST_LAUNCHES", 500)
    monkeypatch.setattr(slices, "MOST_STEPS", 100)
    monkeypatch.setattr(slices, "MOST_SPANS", 50)
    monkeypatch.setattr(perfetto, "MOST_VALUES", 40)
    monkeypatch.setattr(chrome, "MOST_VALUES", 40)
    monkeypatch.setattr(slices.tracks, "__defaults__", (500,))
    short, long = sample(steps=100), sample(steps=400)
    for render in (perfetto.render, chrome.render):
        assert len(render(long)) < 1.1 * len(render(short))
    about = Parsed(perfetto.render(long)).slices["about this profile"][0]["args"]
    assert "only every" in about["left out"]


def test_chromes_json_says_the_same(profile: Profile, parsed: Parsed) -> None:
    found = json.loads(chrome.render(profile))
    events = found["traceEvents"]
    kinds = Counter(e["ph"] for e in events)
    flows = 6 * 14
    pieces = sum(len(s) for name, s in parsed.slices.items() if name != "about this profile")
    assert (kinds["X"], kinds["s"], kinds["f"]) == (pieces, flows, flows)
    assert kinds["C"] == sum(len(values) for values in parsed.counters.values())
    assert {"rail/VDD_IN [W]", "process/resident [B]"} <= {e["name"] for e in events}
    assert found["otherData"]["model"] == "sample_cnn"
    first = next(e for e in events if e["ph"] == "X")
    assert (first["name"], first["ts"]) == ("step 0", 0)
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")


def test_an_unknown_value_is_left_out_not_drawn_as_zero() -> None:
    profile = sample(steps=2)
    series = profile.trace.series["process/resident"]
    series.values[3] = np.nan
    values = Parsed(perfetto.render(profile)).counters["process/resident"]
    assert len(values) == len(series) - 1
    json.loads(chrome.render(profile), parse_constant=pytest.fail)
