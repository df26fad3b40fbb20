"""Reading files: kept open, reopened, of any length; commands; and what is said when it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.telemetry.played import MS

from pocketgrad.base.errors import UnknownNameError
from pocketgrad.telemetry import ALL, find
from pocketgrad.telemetry import __file__ as package_file
from pocketgrad.telemetry.machine import LocalFiles, Machine, UnreadableError, run_command
from pocketgrad.telemetry.parse import integer_list, number, share


def test_a_kept_file_is_read_anew_each_time(tmp_path: Path) -> None:
    machine = Machine(LocalFiles(tmp_path))
    path = tmp_path / "a"
    for text in ("1\n", "22\n", "3\n"):
        path.write_text(text)
        assert machine.value("/a", int) == int(text)


@pytest.mark.parametrize("length", [4095, 4096, 4097, 20_000])
def test_a_long_file_is_read_whole(length: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * length)
    machine = Machine(LocalFiles(tmp_path))
    for _ in range(2):
        assert len(machine.text("/a", keep=True)) == length


def test_names_are_in_counting_order(tmp_path: Path) -> None:
    for name in ("cpu10", "cpu2", "cpufreq", "cpu0"):
        (tmp_path / name).mkdir()
    machine = Machine(LocalFiles(tmp_path))
    assert machine.names("/", r"cpu\d+") == ["cpu0", "cpu2", "cpu10"]
    assert machine.names("/nowhere") == []


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "words").write_text("a b\n")
    (tmp_path / "folder").mkdir()
    machine = Machine(LocalFiles(tmp_path))
    for path, words in (
        ("/none", "/none does not exist"),
        ("/empty", "/empty is empty"),
        ("/words", "/words holds 'a b', which is no value"),
        ("/folder", "/folder: Is a directory"),
    ):
        with pytest.raises(UnreadableError, match=words):
            machine.value(path, number)


def test_commands_that_are_missing_or_fail_are_told_apart() -> None:
    assert run_command((sys.executable, "-c", "print(5)")) == "5\n"
    with pytest.raises(UnreadableError, match="the command no-such-tool is not installed"):
        run_command(("no-such-tool",))
    with pytest.raises(UnreadableError, match="failed with code 3: oh"):
        run_command((sys.executable, "-c", "import sys; print('oh'); sys.exit(3)"))


def test_numbers_of_the_kernel() -> None:
    assert [number(t) for t in ("37 %", "32760 ma", "-12", " 1.5")] == [37, 32760, -12, 1.5]
    assert [share(t) for t in ("42@1000000000Hz", "37 0 63", "99 %")] == [42, 37, 99]
    assert integer_list("0-1,4") == integer_list("0 1 4") == [0, 1, 4]
    for garbage in ("", "x", "1 2", "--3", "0x10"):
        with pytest.raises(ValueError):
            number(garbage)
    with pytest.raises(ValueError):
        share("101")


def test_every_sampler_is_in_the_list() -> None:
    modules = [
        p
        for p in Path(package_file).parent.glob("*.py")
        if "\ndef find(machine: Machine) -> " in p.read_text()
    ]
    assert {p.stem for p in modules} == set(ALL)
    assert list(ALL) == sorted(ALL)


def test_an_unknown_sampler_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean rapl"):
        find(Machine(), ["rpl"])
    assert MS == 1_000_000
