"""Every example script and every Python block of the documents runs.

A document's blocks run in order in one process, as a reader would type them. A block that
cannot run says why in the line before it: ``<!-- not run: the reason -->``.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LIMIT_S = 60  # what an example may take on a laptop with --quick
_BLOCK = re.compile(r"^(?P<before>[^\n]*)\n```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.*?) *-->")


@dataclass(frozen=True)
class Block:
    """A Python block; ``line`` counts the lines before its code."""

    code: str
    line: int
    skipped: bool


def blocks(text: str) -> list[Block]:
    """The Python blocks of a Markdown text."""
    found = []
    text = "\n" + text  # so that a block at the very top has a line before it
    for match in _BLOCK.finditer(text):
        mark = _NOT_RUN.search(match["before"])
        assert mark is None or len(mark["reason"]) > 3, "a block that is not run says why"
        line = text.count("\n", 1, match.start("code"))
        found.append(Block(match["code"], line, skipped=mark is not None))
    return found


def program(text: str) -> str:
    """The blocks to run, each at its line, so that a traceback points into the document."""
    lines: list[str] = []
    for block in blocks(text):
        if not block.skipped:
            lines += [""] * (block.line - len(lines)) + block.code.splitlines()
    return "\n".join(lines)


def run(code: str, *arguments: str, cwd: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        input=code,
        cwd=cwd,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_an_example_runs_to_its_end(script: Path, tmp_path: Path) -> None:
    run("", str(script), "--quick", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_document_run_in_order(document: Path, tmp_path: Path) -> None:
    code = program(document.read_text())
    if code:
        run(code, "-", cwd=tmp_path)


def test_blocks_keep_their_lines_and_skip_only_with_a_reason() -> None:
    text = "# t\n\n```python\na = 1\n```\n\n<!-- not run: needs a phone -->\n```python\nb\n```\n"
    first, second = blocks(text)
    assert (first.code, first.line, first.skipped) == ("a = 1\n", 3, False)
    assert second.skipped
    assert program(text) == "\n\n\na = 1"
    with pytest.raises(AssertionError, match="says why"):
        blocks("<!-- not run:  -->\n```python\nb\n```\n")


def test_every_example_explains_itself_and_knows_quick() -> None:
    for script in SCRIPTS:
        text = script.read_text()
        assert ast.get_docstring(ast.parse(text)), script.name
        assert "--quick" in text, f"{script.name} must run in under {LIMIT_S} s with --quick"
