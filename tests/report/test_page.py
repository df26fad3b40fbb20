"""The page as a file: complete, offline, bounded, and safe against odd names."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from tests.helpers.sample_profile import sample

from pocketgrad.report import page, page_events
from pocketgrad.trace.profile import Profile

BUDGET = 110_000  # bytes of the page without a profile: library, scripts, style


def embedded(profile: Profile) -> Any:
    text = page.render(profile).decode()
    found = re.search(
        r'<script type="application/json" id="profile">(.*?)</script>', text, re.DOTALL
    )
    assert found
    return json.loads(found.group(1), parse_constant=pytest.fail)


def test_it_loads_nothing_from_anywhere() -> None:
    text = page.render(sample()).decode()
    loads = (
        r"""(?:\bsrc\s*=|\bhref\s*=|url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\()"""
    )
    targets = re.findall(rf"{loads}\s*['\"]?([^'\")\s>]*)", text)
    assert [t for t in targets if not t.startswith(("#", "data:"))] == []
    assert "default-src 'none'" in text
    known = {"https://github.com/leeoniya/uPlot"}  # the library's own name in its first comment
    assert set(re.findall(r"https?://[^\s\"'()]+", text)) <= known


def test_nothing_is_left_of_the_template_and_the_parts_stay_small() -> None:
    text = page.render(sample()).decode()
    assert "{{" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert len(text) - len(json.dumps(page.content(sample()))) < BUDGET


def test_a_name_cannot_end_the_script_it_stands_in() -> None:
    profile = sample(steps=1, warmups=0)
    evil = "</script><script>alert(1)</script>"
    launches = tuple(dataclasses.replace(row, scope=evil) for row in profile.launches)
    metadata = {**profile.metadata, "model": evil}
    changed = dataclasses.replace(profile, launches=launches, metadata=metadata)
    assert "<script>alert" not in page.render(changed).decode()
    assert embedded(changed)["launches"][0]["scope"] == evil


def test_the_data_says_what_the_profile_says() -> None:
    profile = sample()
    found = embedded(profile)
    starts = [sum(found["events"]["start"][: i + 1]) for i in range(5)]
    origin = profile.steps[0].start_ns
    assert starts == [t - origin for t in profile.events.start_ns[:5].tolist()]
    ops = next(g for g in found["groups"] if g["key"] == "op")["rows"]
    conv = next(r for r in ops if r["name"] == "conv2d")
    layers = [r for r in profile.ops if r.op == "conv2d"]
    assert conv["flops"] == sum(r.flops for r in layers)
    joules = sum(r.energy.joules or 0 for r in layers if r.energy)
    assert conv["joules"] == pytest.approx(joules / 10)
    assert conv["known"] == "attributed"
    assert conv["shared"]


def test_each_breakdown_adds_up_to_the_same_time() -> None:
    profile = dataclasses.replace(sample(), ops=sample().ops)
    groups = {g["key"]: sum(r["ns"] for r in g["rows"]) for g in embedded(profile)["groups"]}
    assert groups["layer"] == pytest.approx(groups["op"], rel=0.01)  # sums of medians differ a bit
    assert groups["phase"] == pytest.approx(groups["op"], rel=0.01)
    assert groups["work"] == pytest.approx(groups["op"], rel=0.01)


def test_what_is_not_there_has_its_reason_and_no_chart_of_zeros() -> None:
    found = embedded(sample(power=False))
    joules = next(m for m in found["measures"] if m["key"] == "joules")
    assert joules["absent"] == "no sensor of power was found here"
    panels = {panel["title"]: panel for panel in found["sensors"]}
    assert panels["Power"]["series"] == []
    assert panels["Power"]["absent"] == [["power", "no sensor of power was found here"]]
    assert panels["Temperature"]["absent"] == [["thermal", "/sys/class/thermal does not exist"]]
    assert panels["Waiting for a resource (pressure)"]["absent"]
    energy = next(tile for tile in found["tiles"] if tile["label"] == "Energy")
    assert energy["absent"]
    assert energy["value"] == "not available"


def test_three_measured_steps_show_how_busy_each_core_was() -> None:
    cores = embedded(sample())["cores"]
    assert [s["number"] for s in cores["steps"]] == [5, 6, 7]
    assert [row["name"] for row in cores["rows"]] == ["cpu0", "cpu1", "cpu2", "cpu3"]
    means = [row["mean"] for row in cores["rows"]]
    assert means == sorted(means)  # so the sample was made
    assert all(0 <= v <= 100 for row in cores["rows"] for v in row["v"] if v is not None)


def test_the_page_of_a_long_run_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_events, "MOST_LAUNCHES", 14 * 20)
    monkeypatch.setattr(page_events, "MOST_STEPS", 50)
    found = embedded(sample(steps=200))
    assert len(found["events"]["launch"]) == 14 * 20
    assert len(found["steps"]) <= 50 + 20
    assert "only every 10th step" in found["timelineNote"]
    assert f"Of 200 steps, {len(found['steps'])} are drawn." in found["timelineNote"]


def test_samples_of_another_device_are_not_taken_for_this_runs() -> None:
    profile = sample(steps=1)
    metadata = {**profile.metadata, "device_tree": "trees/phone", "period_ns": 10_000_000}
    found = embedded(dataclasses.replace(profile, metadata=metadata))
    assert "a recording of another device (trees/phone)" in found["warnings"][0]
    assert ["period", "10 ms"] in found["metadata"]


def test_a_profile_without_steps_or_launches_still_makes_a_page() -> None:
    bare = Profile({}, (), page_events_empty(), (), (), (), (), sample().trace)
    found = embedded(bare)
    assert found["title"] == "model: profile"
    assert found["roofline"]["points"] == []


def page_events_empty():
    import numpy as np

    from pocketgrad.trace.profile import Events

    return Events(*(np.empty(0, np.int64) for _ in Events.__slots__))
