"""`pocketgrad devices`, and what is common to all commands: help, errors, JSON, exit codes."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.drivers import INTEL, NVIDIA, POCL, survey_of

from pocketgrad.backends import platforms
from pocketgrad.backends.runtimes import RuntimeReport, Survey
from pocketgrad.base.errors import DeviceError
from pocketgrad.cli import COMMANDS, __main__, devices
from pocketgrad.cli.__main__ import build_parser, main
from pocketgrad.cli.output import Table, show

BROKEN = RuntimeReport("/lib/bad.so", "/etc/bad.icd", "crashed", "load", "Aborted", "reinstall it")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """Put a made-up machine in place of this one."""

    def become(found: Survey) -> None:
        monkeypatch.setattr(platforms, "survey", lambda refresh=False: found)

    return become


def test_the_table_names_every_device_and_what_auto_takes(machine, capsys) -> None:
    machine(survey_of(POCL, INTEL, NVIDIA))
    assert main(["devices"]) == 0
    text = capsys.readouterr().out
    for ident in ("pocl:0", "intel:0", "nvidia:0"):
        assert ident in text
    assert "auto takes: nvidia:0 (a GPU comes first)" in text


def test_a_broken_driver_is_listed_with_what_to_do(machine, capsys) -> None:
    machine(Survey((BROKEN,), notes=("the cache folder cannot be written",)))
    assert main(["devices"]) == 0
    text = capsys.readouterr().out
    assert "/lib/bad.so: crashed; Aborted" in text
    assert "to do: reinstall it" in text
    assert "the cache folder cannot be written" in text
    assert "auto takes: reference" in text


def test_json_holds_all_that_is_known(machine, capsys) -> None:
    machine(survey_of(POCL, INTEL))
    assert main(["devices", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [r["devices"][0]["ident"] for r in found["runtimes"]] == ["pocl:0", "intel:0"]
    assert found["runtimes"][0]["devices"][0]["max_alloc_nbytes"] == POCL.max_alloc_nbytes
    assert found["auto"]["device"] == "pocl:0"


def test_json_of_a_bare_machine_parses(machine, capsys) -> None:
    machine(Survey(()))
    assert main(["devices", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["auto"]["backend"] == "reference"


def test_refresh_probes_again(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    asked = []

    def survey(refresh: bool) -> Survey:
        asked.append(refresh)
        return Survey(())

    monkeypatch.setattr(platforms, "survey", survey)
    main(["devices", "--refresh"])
    main(["devices"])
    assert asked == [True, False]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, capsys) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert "example:" in text
    assert f"pocketgrad {name}" in text
    assert "--json" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_a_module_of_its_name(name: str) -> None:
    actions = [a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    assert name in actions[0].choices


def test_every_module_with_a_name_is_in_the_list_of_commands() -> None:
    folder = Path(__main__.__file__).parent
    texts = {path.stem.replace("_", "-"): path.read_text() for path in folder.glob("*.py")}
    assert {stem for stem, text in texts.items() if "\nNAME = " in text} == set(COMMANDS)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["devises"], "no command is named 'devises'; did you mean devices?"),
        (["devices", "--jsn"], "unrecognized arguments: --jsn"),
        ([], "arguments are required: COMMAND"),
    ],
)
def test_a_wrong_command_line_is_one_line(argv: list[str], words: str, capsys) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (DeviceError("no\nGPU"), 2, "error: no GPU"),
        (OSError(28, "No space left on device", "/x"), 2, "No space left on device: '/x'"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_a_command_raises_is_one_line_and_a_code(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr(devices, "run", fail)
    assert main(["devices"]) == code
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_with_json_an_error_is_json_on_stdout(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(devices, "run", lambda _: (_ for _ in ()).throw(DeviceError("none")))
    assert main(["devices", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {"error": {"type": "DeviceError", "message": "none"}}
    assert err == ""


def test_text_that_looks_like_markup_is_shown_as_it_is(capsys) -> None:
    show("[red]x[/red]", Table("t [b]", ("[a]",), [("[/nothing]",)]))
    text = capsys.readouterr().out
    for part in ("[red]x[/red]", "t [b]", "[a]", "[/nothing]"):
        assert part in text


def test_a_reader_that_leaves_early_causes_no_traceback() -> None:
    program = (
        "import sys\n"
        "from pocketgrad.cli import devices\n"
        "from pocketgrad.cli.__main__ import main\n"
        "devices.run = lambda args: [print('x' * 80) for _ in range(9999)] and 0\n"
        "sys.exit(main(['devices']))\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 1


@pytest.mark.device
def test_on_this_machine_both_runs_say_the_same(capsys) -> None:
    assert main(["devices", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["devices", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == first
