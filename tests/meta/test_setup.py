"""tools/setup with a made-up Python that notes what it was asked: no network, no real .venv."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SYSTEM_DRIVERS = "/etc/OpenCL/vendors"

# Answers the version check, makes a .venv that holds a copy of itself, and notes calls of pip.
PYTHON = """#!/bin/sh
case "$*" in
    *version_info*) exit {version_check} ;;
    --version) echo "Python 3.11.2" ;;
    "-m venv "*) {venv} mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
    "-m pip install"*) echo "$*" >>pip-calls; exit {pip} ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A project folder whose path has spaces, on a machine without an OpenCL driver."""
    folder = tmp_path / "a check out"
    (folder / "tools").mkdir(parents=True)
    script = (ROOT / "tools" / "setup").read_text()
    assert SYSTEM_DRIVERS in script
    (folder / "tools" / "setup").write_text(script.replace(SYSTEM_DRIVERS, f"{tmp_path}/vendors"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def setup(
    checkout: Path, what: str = "demo", machine: str = "x86_64", **python: str | int
) -> subprocess.CompletedProcess[str]:
    names = {"version_check": 0, "venv": "", "pip": 0, "ci": "false"} | python
    command = checkout / "bin" / "python3"
    command.parent.mkdir(exist_ok=True)
    command.write_text(PYTHON.format(**names))
    command.chmod(0o755)
    uname = checkout / "bin" / "uname"
    uname.write_text(f"#!/bin/sh\n[ $1 = -s ] && echo Linux || echo {machine}\n")
    uname.chmod(0o755)
    env = {
        "PATH": f"{command.parent}:/usr/bin:/bin",
        "CI": str(names["ci"]),
        "HOME": str(checkout.parent / "home"),
        "PYTHON": str(command),
    }
    if python.get("version_check"):  # the real ones must not be found either
        tools = checkout / "bin"
        for name in ("sh", "dirname", "cat", "cp", "mkdir", "cksum", "tr"):
            found = shutil.which(name)
            assert found, name
            if not (tools / name).exists():
                (tools / name).symlink_to(found)
        env["PATH"] = str(tools)
    return subprocess.run(
        ["/bin/sh", str(checkout / "tools" / "setup"), what],
        env=env,
        cwd=os.sep,
        capture_output=True,
        text=True,
        check=False,
    )


def installed(checkout: Path) -> list[str]:
    """What pip was asked to install, call by call."""
    calls = checkout / "pip-calls"
    return [line.split()[-1] for line in calls.read_text().splitlines()] if calls.exists() else []


def test_a_second_time_nothing_is_installed(checkout: Path) -> None:
    assert setup(checkout).returncode == 0
    assert setup(checkout).stdout.count("Installing") == 0
    assert len(installed(checkout)) == 1


def test_testing_after_the_demo_adds_the_extras_and_the_demo_needs_no_more(checkout: Path) -> None:
    setup(checkout)
    setup(checkout, "test")
    setup(checkout)
    first, second = installed(checkout)
    assert "test" not in first
    assert second.startswith(".[test,dev")


def test_a_changed_project_file_installs_again(checkout: Path) -> None:
    setup(checkout)
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("# more\n")
    setup(checkout)
    assert len(installed(checkout)) == 2


def test_a_moved_checkout_installs_again(checkout: Path) -> None:
    setup(checkout)
    moved = checkout.rename(checkout.with_name("elsewhere"))
    setup(moved)
    assert len(installed(moved)) == 2


def test_a_failed_installation_is_tried_again(checkout: Path) -> None:
    failed = setup(checkout, pip=1)
    assert failed.returncode == 1
    assert "run the same command again" in failed.stderr
    setup(checkout, "clean")
    assert setup(checkout).returncode == 0
    assert len(installed(checkout)) == 2


def test_intels_runtime_is_taken_only_without_pocl_but_always_in_ci(checkout: Path) -> None:
    result = setup(checkout)
    assert installed(checkout)[-1] == ".[cpu]"
    assert "270 MB" in result.stdout
    setup(checkout, "clean")
    drivers = checkout.parent / "vendors"
    drivers.mkdir()
    (drivers / "pocl.icd").touch()
    setup(checkout)
    assert installed(checkout)[-1] == "."
    setup(checkout, "test", ci="true")
    assert installed(checkout)[-1] == ".[test,dev,cpu,peer]"


def test_intels_runtime_lies_in_a_path_without_spaces(checkout: Path) -> None:
    """It finds its own files by a path that it cuts at the first space."""
    setup(checkout)
    place = (checkout / ".venv").resolve()
    assert place.is_relative_to(checkout.parent / "home")
    setup(checkout, "clean")
    assert not place.exists()
    assert not (checkout / ".venv").is_symlink()


def test_in_a_path_without_spaces_the_environment_is_in_the_checkout(checkout: Path) -> None:
    plain = checkout.rename(checkout.with_name("checkout"))
    setup(plain)
    assert not (plain / ".venv").is_symlink()
    assert installed(plain) == [".[cpu]"]


def test_where_no_runtime_can_be_had_it_says_what_to_install(checkout: Path) -> None:
    result = setup(checkout, machine="aarch64")
    assert result.returncode == 0
    assert installed(checkout) == ["."]
    assert "reference backend" in result.stdout
    assert "apt install pocl-opencl-icd" in result.stdout


def test_an_old_python_is_refused_with_what_to_do(checkout: Path) -> None:
    result = setup(checkout, version_check=1)
    assert result.returncode == 1
    assert "needs Python 3.11 or later and found Python 3.11.2" in result.stderr
    assert "make PYTHON=" in result.stderr
    assert not installed(checkout)


def test_a_missing_venv_module_is_named(checkout: Path) -> None:
    result = setup(checkout, venv="exit 1;")
    assert result.returncode == 1
    assert "apt install python3-venv" in result.stderr
