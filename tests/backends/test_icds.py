"""Where drivers announce themselves, on made-up folders."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pocketgrad.backends import icds
from pocketgrad.backends.cachefile import read_object, why_not_writable, write_whole
from pocketgrad.backends.icds import Icd, discover, folder_of
from pocketgrad.base.config import Settings


def config(tmp_path: Path, vendors: object = "") -> Settings:
    return Settings(tmp_path / "cache", 5.0, verify=False, icd_vendors=str(vendors))


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no driver at all; the system's folder is the one returned."""
    system = tmp_path / "system"
    system.mkdir()
    monkeypatch.setattr(icds, "SYSTEM_FOLDER", system)
    monkeypatch.setattr(icds, "BARE_LIBRARIES", ())
    monkeypatch.setattr("sys.base_prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(icds, "wheel_library", lambda: None)
    return system


def test_a_machine_without_drivers_has_none(bare: Path, tmp_path: Path) -> None:
    assert discover(config(tmp_path)) == ()


def test_the_system_folder_the_prefix_and_bare_libraries_are_all_read(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare / "a.icd").write_text("libone.so.1\n")
    own = tmp_path / "prefix/etc/OpenCL/vendors"
    own.mkdir(parents=True)
    (own / "b.icd").write_text("/nowhere/libtwo.so")
    vendor = tmp_path / "libOpenCL.so"
    vendor.write_bytes(b"")
    monkeypatch.setattr(icds, "BARE_LIBRARIES", (vendor, tmp_path / "absent.so"))
    found = [icd.library for icd in discover(config(tmp_path))]
    assert found == ["libone.so.1", "/nowhere/libtwo.so", str(vendor)]


def test_one_library_announced_twice_is_one_driver(bare: Path, tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(b"")
    (tmp_path / "link.so").symlink_to(library)
    (bare / "a.icd").write_text(str(library))
    (bare / "b.icd").write_text(str(tmp_path / "link.so"))
    assert len(discover(config(tmp_path))) == 1


def test_the_library_in_the_wheel_replaces_its_wrong_icd_file(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libintelocl.so"
    library.write_bytes(b"")
    (bare / "intel-cpu.icd").write_text(f"{icds.UNRELOCATED}/lib/libintelocl.so")
    monkeypatch.setattr(icds, "wheel_library", lambda: library)
    assert [icd.library for icd in discover(config(tmp_path))] == [str(library)]


def test_the_wheel_library_is_found_by_the_wheels_own_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (
        "libintelocl.so-gdb.py",
        "libintelocl.so.2026.1",
        "libintelocl.so",
        "libintelocl_emu.so",
    )
    files = []
    for name in names:
        (tmp_path / name).write_bytes(b"")
        files.append(SimpleNamespace(name=name, locate=lambda name=name: tmp_path / name))
    wheel = SimpleNamespace(files=files)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: wheel)
    assert icds.wheel_library() == tmp_path / "libintelocl.so"


def test_without_the_wheel_there_is_no_wheel_library() -> None:
    assert icds.wheel_library("no-such-distribution") is None


@pytest.mark.parametrize("form", ["folder", "file", "library"])
def test_a_users_choice_replaces_the_known_places(bare: Path, tmp_path: Path, form: str) -> None:
    (bare / "a.icd").write_text("libone.so.1")
    own = tmp_path / "own folder"
    own.mkdir()
    (own / "mine.icd").write_text("/opt/mine.so")
    place = {"folder": own, "file": own / "mine.icd", "library": "/opt/mine.so"}[form]
    assert [icd.library for icd in discover(config(tmp_path, place))] == ["/opt/mine.so"]


def test_a_folder_of_ours_inherited_from_a_parent_is_no_choice_of_the_user(
    bare: Path, tmp_path: Path
) -> None:
    (bare / "a.icd").write_text("libone.so.1")
    ours = folder_of([], config(tmp_path))
    assert [icd.library for icd in discover(config(tmp_path, ours))] == ["libone.so.1"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda file: file.write_text("\n"), "empty"),
        (lambda file: file.write_bytes(b"\xff\xfe\x00"), "not text"),
        (lambda file: file.mkdir(), "Is a directory"),
        (lambda file: file.symlink_to("gone"), "No such file"),
    ],
)
def test_an_announcement_that_cannot_be_used_says_why(
    bare: Path, tmp_path: Path, make, words: str
) -> None:
    make(bare / "a.icd")
    (icd,) = discover(config(tmp_path))
    assert words in icd.problem
    assert str(bare / "a.icd") in icd.problem


def test_a_folder_is_named_by_its_content_and_written_once(tmp_path: Path) -> None:
    one, two = Icd("/a b/one.so", "x"), Icd("two.so", "y")
    folder = folder_of([one, two], config(tmp_path))
    texts = [file.read_text() for file in sorted(folder.glob("*.icd"))]
    assert texts == ["/a b/one.so\n", "two.so\n"]
    before = [file.stat().st_mtime_ns for file in folder.glob("*.icd")]
    assert folder_of([one, two], config(tmp_path)) == folder
    assert [file.stat().st_mtime_ns for file in folder.glob("*.icd")] == before
    assert folder_of([two], config(tmp_path)) != folder


def test_a_cache_that_cannot_be_written_gets_a_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    folder = folder_of([Icd("one.so", "x")], config(tmp_path))
    assert [file.read_text() for file in folder.glob("*.icd")] == ["one.so\n"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "object.json"
    write_whole(file, json.dumps({"a": 1}))
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "\ud800")
    assert read_object(file) == {"a": 1}
    assert [path.name for path in file.parent.iterdir()] == ["object.json"]


@pytest.mark.parametrize("text", ["", '{"a": ', "[1]", "\x00"])
def test_a_damaged_cache_file_counts_as_absent(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    assert read_object(tmp_path / "x.json") is None


def test_why_a_folder_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert why_not_writable(tmp_path / "new") == ""
    assert why_not_writable(tmp_path / "file" / "sub") == "Not a directory"
