"""The rules of the house are themselves tested: each planted violation must be caught."""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "pocketgrad"
MODULES = sorted(PACKAGE.rglob("*.py"))


def python(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def size(root: Path) -> subprocess.CompletedProcess[str]:
    return python(str(ROOT / "tools" / "size"), str(root))


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_size_accepts_what_is_within_the_limits(tmp_path: Path) -> None:
    plant(tmp_path, "src/a.py", "x = 1\n" * 400)
    assert size(tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("src/a.py", "x = 1\n" * 401, "src/a.py:400: 401 lines"),
        ("src/a.cl", "int x;\n" * 601, "src/a.cl:600: 601 lines are never right"),
        ("tests/b.py", "def f():\n" + "    x = 1\n" * 60, "tests/b.py:1: f has 61 lines"),
        ("tools/c", "#!/usr/bin/env python3\n" + "x = 1\n" * 400, "tools/c:400: 401 lines"),
    ],
)
def test_size_catches(tmp_path: Path, name: str, text: str, said: str) -> None:
    plant(tmp_path, name, text)
    result = size(tmp_path)
    assert result.returncode == 1
    assert said in result.stdout


LINE = "import pocketgrad.{}  # planted\n"
PLANTED = [
    ("ir/planted.py", LINE.format("plan"), "Layers point down only"),
    ("newcomer/__init__.py", '"""A package without a layer."""\n', "Layers point down only"),
    ("nn/planted.py", LINE.format("passes"), "Model code does not know"),
    ("passes/planted.py", "import torch\n", "The compiler core is pure"),
    ("train/planted.py", "import pyopencl\n", "Only backends speak to OpenCL"),
    ("train/planted.py", "import torch\n", "Other frameworks are guests"),
    ("passes/planted.py", LINE.format("passes.autodiff"), "A pass never imports a pass"),
    ("backends/null.py", LINE.format("backends.opencl"), "A backend never imports a backend"),
    ("bench/runner.py", "import torch\n", "A peer is imported by its adapter only"),
    ("bench/adapters/torch.py", LINE.format("bench.adapters.jax"), "An adapter never imports"),
    ("data/planted.py", LINE.format("ops"), "Data sets depend on base only"),
    ("telemetry/planted.py", LINE.format("ops"), "Samplers depend on trace and base only"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "contract"), PLANTED)
def test_a_planted_import_breaks_its_contract(
    tmp_path: Path, name: str, text: str, contract: str
) -> None:
    shutil.copytree(PACKAGE, tmp_path / "pocketgrad")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    plant(tmp_path / "pocketgrad", name, text)
    result = lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    broken = [line for line in result.stdout.splitlines() if " BROKEN" in line]
    assert any(line.startswith(contract) for line in broken), result.stdout


@pytest.mark.slow
def test_an_import_cycle_between_siblings_is_caught(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "pocketgrad")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    plant(tmp_path / "pocketgrad", "ir/tick.py", "import pocketgrad.ir.tock\n")
    plant(tmp_path / "pocketgrad", "ir/tock.py", "import pocketgrad.ir.tick\n")
    assert "No import cycles between siblings BROKEN" in lint_imports(tmp_path).stdout


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of a copy: its folder comes before the installed package on the path."""
    code = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports; "
    return python("-c", code + "sys.exit(lint_imports(no_cache=True))", cwd=root)


def test_the_reference_lists_every_option_in_any_python() -> None:
    parser = argparse.ArgumentParser(prog="p", description="What %(prog)s is.")
    commands = parser.add_subparsers(dest="command")
    train = commands.add_parser("train", description="Trains.", epilog="example:\n  p train a")
    train.add_argument("data", help="where %% is")
    train.add_argument("-b", "--batch", type=int, default=64, help="samples per step")
    train.add_argument("--json", action="store_true", help="machine-readable")
    train.add_argument("--secret", help=argparse.SUPPRESS)
    text = script("regen").reference(parser)
    assert "What p is." in text
    assert "## `p train`" in text
    assert "| `DATA` | where % is |" in text
    assert "| `-b BATCH`, `--batch BATCH` | samples per step (default: 64) |" in text
    assert "| `--json` | machine-readable |" in text
    assert "```text\nexample:\n  p train a\n```" in text
    assert "secret" not in text


def test_a_stale_reference_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    regen = script("regen")
    monkeypatch.setattr(regen, "ROOT", tmp_path)
    monkeypatch.setattr(regen, "CLI", tmp_path / "cli.md")
    assert not regen.regen_cli(check=True)
    assert "cli.md is stale; run tools/regen cli" in capsys.readouterr().out
    assert regen.regen_cli(check=False)
    assert regen.regen_cli(check=True)


def script(name: str) -> Any:
    """A script of tools/ as a module."""
    loader = SourceFileLoader(f"tools_{name}", str(ROOT / "tools" / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_every_module_says_what_it_is() -> None:
    silent = [
        m.relative_to(PACKAGE).as_posix()
        for m in MODULES
        if not ast.get_docstring(ast.parse(m.read_text()))
    ]
    assert not silent, f"they need one to four opening lines: what it is, and is not: {silent}"


def test_every_lint_exception_gives_its_reason() -> None:
    """A bare ``noqa: X`` or ``type: ignore[x]`` tells a reader nothing; words after it do."""
    bare = re.compile(r"#\s*(?:noqa:\s*[A-Z0-9, ]+|type:\s*ignore\[[^\]]*\])\s*$", re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}: {match.group().strip()}"
        for folder in ("src", "tests", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for match in bare.finditer(path.read_text())
    ]
    assert not found, "\n".join(found)


def test_only_config_reads_the_environment() -> None:
    reads = re.compile(r"os\.(environ\b(?!\[\"?\w+\"?\] = )|getenv)")
    readers = {p.relative_to(PACKAGE).as_posix() for p in MODULES if reads.search(p.read_text())}
    assert readers <= {"base/config.py"}, f"settings belong into base/config.py: {readers}"


def test_file_names_say_what_is_inside() -> None:
    vague = {"util", "utils", "helper", "helpers", "manager", "misc", "common"}
    assert not [m for m in MODULES if m.stem in vague]


def test_the_index_of_decisions_is_complete() -> None:
    folder = ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text()
    absent = [p.name for p in folder.glob("0*.md") if f"({p.name})" not in index]
    assert not absent, f"docs/adr/README.md does not list {absent}"


def test_changelog_fragments_are_named_by_their_kind() -> None:
    named = re.compile(r"\d+(-[a-z0-9-]+)?\.(added|changed|fixed|removed)\.md|README\.md")
    wrong = [p.name for p in (ROOT / "changelog.d").iterdir() if not named.fullmatch(p.name)]
    assert not wrong, f"changelog.d/README.md tells the form of a name: {wrong}"


def test_the_console_command_and_the_data_files_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"pocketgrad": "pocketgrad.cli.__main__:main"}
    declared = project["tool"]["setuptools"]["package-data"]["pocketgrad"]
    shipped = {f for pattern in declared for f in PACKAGE.glob(pattern)}
    other = {p for p in PACKAGE.rglob("*") if p.is_file() and p.suffix not in {".py", ".pyc"}}
    assert other <= shipped, f"not in the wheel: {sorted(other - shipped)}"
