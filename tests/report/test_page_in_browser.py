"""The page in a browser: every chart drawn, nothing complained of, in both themes and widths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.helpers.browser import Browser, found
from tests.helpers.sample_profile import sample

from pocketgrad.report import page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SECTIONS = (
    "timeline", "breakdown", "roofline", "cores", "memory", "sensors", "energy", "cost", "about",
)  # fmt: skip
# How many different colours a canvas shows: one that is blank shows one or two.
COLOURS = """
(canvas) => {
  const p = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < p.length; i += 16) seen.add(p[i] << 16 | p[i+1] << 8 | p[i+2]);
  return seen.size; }
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = found()
    if path is None:
        missing("no Chromium is installed: apt install chromium")
    assert path
    with Browser(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {"full": sample(queues=2), "bare": sample(power=False)}
    for name, profile in made.items():
        (folder / f"{name}.html").write_bytes(page.render(profile))
    return {name: folder / f"{name}.html" for name in made}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", ["full", "bare"])
def test_every_chart_is_drawn_and_nothing_is_complained_of(
    browser: Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    browser.open(pages[name], width, dark=dark)
    assert browser.errors == []
    assert browser.requests == [pages[name].resolve().as_uri()]
    assert browser.ask("[...document.querySelectorAll('section')].map(s => s.id)") == list(SECTIONS)
    colours = browser.ask(f"[...document.querySelectorAll('canvas')].map({COLOURS})")
    assert len(colours) >= 7
    assert min(colours) > 5, colours
    light = browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(252, 252, 251)"
    assert light is not dark


@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_wider_than_the_window(
    browser: Browser, pages: dict[str, Path], width: int
) -> None:
    browser.open(pages["full"], width)
    assert browser.ask("document.documentElement.scrollWidth") == width


def test_it_follows_the_theme_and_the_width_while_open(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["full"])
    pixels = "document.querySelector('#timeline canvas').toDataURL()"
    before = browser.ask(pixels)
    browser.look(1400, 900, dark=True)
    browser.wait(f"{pixels} !== '{before}'")
    browser.look(700, 900, dark=True)
    browser.wait("document.querySelector('#timeline canvas').width < 700")
    browser.wait("document.querySelector('#roofline canvas').width < 700")
    assert browser.errors == []


def test_the_breakdown_switches_by_mouse_and_says_why_joules_are_missing(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["full"])
    press = "[...document.querySelectorAll('#breakdown button')].find(b => b.textContent === '{}')"
    first = "document.querySelector('#breakdown tbody tr').innerText"
    assert "conv2d_grad_weight" in browser.ask(first)
    browser.ask(press.format("layer") + ".click()")
    assert "features.3" in browser.ask(first)
    browser.ask(press.format("joules") + ".click()")
    assert "attributed" in browser.ask(first)
    assert "mJ" in browser.ask(first)
    browser.open(pages["bare"])
    assert browser.ask(press.format("joules") + ".disabled") is True
    text = browser.ask("document.querySelector('#breakdown').innerText")
    assert "joules: not available: no sensor of power was found here" in text


def test_the_timeline_is_used_with_keys_alone(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["full"])
    browser.ask("document.querySelector('#timeline canvas').focus()")
    browser.key("]")
    detail = "document.querySelector('#timeline .detail').innerText"
    first = browser.ask(detail)
    assert "kernel" in first
    browser.key("]")
    assert browser.ask(detail) != first
    pixels = "document.querySelector('#timeline canvas').toDataURL()"
    for key in ("Enter", "ArrowRight", "-", "0", "Escape"):
        before = browser.ask(pixels)
        browser.key(key)
        assert browser.ask(pixels) != before, key
    assert "Click a slice" in browser.ask(detail)
    assert browser.errors == []


def test_a_slice_tells_what_it_is_under_the_pointer(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["full"])
    browser.ask("document.querySelector('#timeline').scrollIntoView({behavior: 'instant'})")
    box = "document.querySelector('#timeline canvas').getBoundingClientRect()"
    left, top = browser.ask(f"[{box}.left, {box}.top]")
    x, y = left + 230, top + 22 + 3 * 23 + 10  # under the axis and three rows
    browser.mouse("mouseMoved", x, y)
    browser.wait("!document.getElementById('tip').hidden")
    text = browser.ask("document.getElementById('tip').innerText")
    assert "conv2d+add+relu" in text
    assert "divided by cost, not measured apart" in text
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseReleased", x, y, button="left", clickCount=1)
    browser.wait(
        "document.querySelector('#timeline .detail').innerText.includes('conv2d+add+relu')"
    )


def test_behind_every_chart_is_a_table(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["full"], 390)
    browser.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.wait("[...document.querySelectorAll('details')].every(d => d.querySelector('td'))")
    behind = browser.ask(
        "[...document.querySelectorAll('details')].map(d => d.closest('section').id)"
    )
    assert {"timeline", "roofline", "cores", "memory", "sensors"} <= set(behind)
    assert browser.ask("document.documentElement.scrollWidth") == 390
    assert browser.errors == []
