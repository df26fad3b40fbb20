"""Recordings: their format, their time, and that a recording of a machine is that machine."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.telemetry.played import DEVICES, MS, device, readings

from pocketgrad.base.errors import DataError
from pocketgrad.telemetry import find
from pocketgrad.telemetry.machine import LocalFiles, Machine, UnreadableError
from pocketgrad.telemetry.playback import Frame, Playback, Recording, load, parse_tree, save
from pocketgrad.telemetry.recording import record

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=30)


def files(recording: Recording, folder: Path) -> Machine:
    """The start of a recording as real files; a plain folder takes no colon on some systems."""
    for path, content in recording.tree.items():
        if path.startswith("/") and isinstance(content, str):
            target = folder / path[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8", newline="")
    commands = Playback(recording).machine
    return Machine(LocalFiles(folder), commands.run, 100, commands.page_nbytes)


@pytest.mark.parametrize("name", DEVICES)
def test_a_folder_of_files_reads_as_the_recording_does(name: str, tmp_path: Path) -> None:
    recording = device(name)
    machine = files(recording, tmp_path)
    found: dict[str, float] = {}
    for probe in find(machine).probes:
        try:
            found |= probe.read()
        except UnreadableError:
            continue
    assert found == readings(recording)


@pytest.mark.parametrize("name", DEVICES)
def test_a_recording_of_a_played_device_is_that_device(name: str, tmp_path: Path) -> None:
    original = device(name)
    now = [0]

    def sleep(seconds: float) -> None:
        now[0] += round(seconds * 1e9)

    machine = Playback(original, lambda: now[0]).machine
    again = record(machine, lambda m: find(m).probes, 2.15, 100 * MS, lambda: now[0], sleep)
    save(again, tmp_path)
    loaded = load(tmp_path)
    for at_ns in (0, 950 * MS, 1050 * MS, 2000 * MS):
        assert readings(loaded, at_ns) == readings(original, at_ns)


@given(content=TEXT, code=st.sampled_from(["EACCES", "ENODATA", "EIO"]))
def test_what_is_saved_is_loaded(content: str, code: str, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("saved")
    text = f"{content}\n"
    frame = Frame(5, {"/a": text, "/b c": None, "/d": OSError(getattr(errno, code), code)})
    tree: dict[str, str | OSError] = {
        "/a": text,
        "$ tool --x": text,
        "/e": OSError(getattr(errno, code), code),
    }
    save(Recording(tree, (frame,), {"device": "made up"}), folder)
    loaded = load(folder)
    assert loaded.about["device"] == "made up"
    assert (loaded.tree["/a"], loaded.tree["$ tool --x"]) == (text, text)
    error = loaded.tree["/e"]
    assert isinstance(error, OSError)
    assert error.errno == getattr(errno, code)
    assert loaded.frames[0].changes["/a"] == text
    assert loaded.frames[0].changes["/b c"] is None


def test_a_change_is_seen_from_its_time_on_and_to_the_end() -> None:
    recording = Recording({"/a": "1\n"}, (Frame(10, {"/a": "2\n"}), Frame(20, {"/a": None})))
    seen = []
    now = [0]
    machine = Playback(recording, lambda: now[0]).machine
    for t_ns in (0, 9, 10, 19, 20, 99):
        now[0] = t_ns
        seen.append(machine.get("/a"))
    assert seen == ["1", "1", "2", "2", None, None]


def test_after_its_end_a_recording_gives_nothing() -> None:
    """A counter that stands still would look like a device that uses no energy."""
    now = [0]
    recording = Recording({"/a": "1\n", "$ b": "2\n"}, (), {"duration_ns": 2_000_000_000})
    machine = Playback(recording, lambda: now[0]).machine
    now[0] = 2_000_000_000
    assert (machine.text("/a"), machine.run(["b"])) == ("1", "2\n")
    now[0] += 1
    with pytest.raises(UnreadableError, match="the recording ended after 2 s"):
        machine.text("/a")
    with pytest.raises(UnreadableError, match="the recording ended after 2 s"):
        machine.run(["b"])


def test_a_folder_that_is_gone_takes_all_below_along() -> None:
    left = Recording({"/a/b": "1\n", "/ab": "2\n"}).with_changes({"/a": None})
    assert set(left.tree) == {"/ab"}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("device.json", "{", r"device.json is no JSON"),
        ("device.json", "[]", r"must hold a JSON object"),
        ("device.json", '{"format": 9}', r"format 9, this version reads 1"),
        ("device.json", '{"format": 1, "duration_ns": "2 s"}', r"duration_ns is '2 s'"),
        ("tree.txt", "/a", r"tree.txt:1: '/a' is neither 'path = content' nor 'path ! ERROR'"),
        ("tree.txt", "/a ! EOOPS", r"tree.txt:1: 'EOOPS' is no error of the system"),
        ("frames.jsonl", '{"set": {}}', r"frames.jsonl:1: a frame needs an integer t_ns"),
        ("frames.jsonl", '{"t_ns": 2}\n{"t_ns": 1}', r"1 ns comes after 2 ns; sort it"),
    ],
)
def test_a_broken_recording_names_file_and_line(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    save(Recording({"/a": "1\n"}), tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=words):
        load(tmp_path)


def test_a_folder_that_is_no_recording_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="record-tree --out DIR"):
        load(tmp_path)


def test_comments_and_blank_lines_are_read_over() -> None:
    assert parse_tree("# what it is\n\n/a = 1\n") == {"/a": "1\n"}
