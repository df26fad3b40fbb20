"""report.html: one file with data, charts and plotting library in it; works offline.

Collects what the page shows (`content`) and puts it into the templates of ``html/``. The names in
`content` are those that the scripts there read.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pocketgrad.base.units import duration, si
from pocketgrad.report import page_costs, page_events, page_samples
from pocketgrad.trace.model import Scalar
from pocketgrad.trace.profile import Profile

# In the order they use each other.
SCRIPTS = (
    "base.js",
    "timeline.js",
    "breakdown.js",
    "curves.js",
    "roofline.js",
    "cores.js",
    "page.js",
)
LIBRARY = "uplot/uPlot.iife.min.js"
STYLES = ("uplot/uPlot.min.css", "page.css")


def render(profile: Profile) -> bytes:
    """The whole page."""
    found = content(profile)
    data = json.dumps(found, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    parts = {
        "title": html.escape(str(found["title"])),
        "style": "\n".join(_asset(name) for name in STYLES),
        "data": data.replace("<", "\\u003c"),  # a name with </script> stays a name
        "library": _asset(LIBRARY),
        "script": "\n".join(_asset(name) for name in SCRIPTS),
    }
    page = _asset("page.html")
    for name, text in parts.items():
        before, after = page.split("{{" + name + "}}")
        page = before + text + after
    return page.encode()


def content(profile: Profile) -> dict[str, Any]:
    """All that the page shows, as the scripts read it."""
    origin = page_events.origin_ns(profile)
    return {
        **_head(profile.metadata),
        "warnings": _warnings(profile),
        "tiles": page_costs.tiles(profile),
        **page_events.content(profile, origin),
        **page_costs.content(profile),
        **page_samples.content(profile, origin),
        "metadata": _metadata(profile),
        "absent": [
            [a.name, a.reason] for a in dict.fromkeys((*profile.absent, *profile.trace.absent))
        ],
    }


def _head(facts: Mapping[str, Scalar]) -> dict[str, str]:
    model, batch = facts.get("model", "model"), facts.get("batch")
    title = f"{model}, batch {batch}" if batch else str(model)
    about = [str(facts[key]) for key in ("device", "driver") if facts.get(key)]
    version = facts.get("pocketgrad")
    return {
        "title": f"{title}: profile",
        "subtitle": " · ".join(about),
        "footer": f"Made by pocketgrad{f' {version}' if version else ''}. Charts: uPlot (MIT).",
    }


def _warnings(profile: Profile) -> list[str]:
    tree = profile.metadata.get("device_tree")
    if not tree:
        return list(profile.warnings)
    played = (
        f"The samples are a recording of another device ({tree}), played back beside this run: "
    )
    return [f"{played}power, temperatures and joules are not this machine's.", *profile.warnings]


def _fact(key: str, value: Scalar) -> list[str]:
    """A line of metadata; the unit at the end of a name goes to the number."""
    if isinstance(value, int | float) and key.endswith("_ns"):
        return [key.removesuffix("_ns").replace("_", " "), duration(value / 1e9)]
    if isinstance(value, int | float) and key.endswith("_nbytes"):
        return [key.removesuffix("_nbytes").replace("_", " "), si(value, "B")]
    return [key.replace("_", " "), str(value)]


def _metadata(profile: Profile) -> list[list[str]]:
    rows = [_fact(key, value) for key, value in profile.metadata.items()]
    rows += [
        [f"clock of {queue}", f"placed on the host's within {clock.error_ns / 1e3:.3g} µs"]
        for queue, clock in profile.clocks.items()
    ]
    return rows


def _asset(name: str) -> str:
    return files("pocketgrad.report").joinpath("html", name).read_text("utf-8")
