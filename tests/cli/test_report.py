"""`pocketgrad report diff`: what changed between two saved profiles."""

from __future__ import annotations

import json

import pytest
from tests.profile.test_compare import noisy

from pocketgrad.cli.__main__ import main
from pocketgrad.profile.folder import save


@pytest.fixture
def folders(tmp_path):
    """A profile, and one whose conv2d is a tenth slower, on another device."""
    for name, profile in (("a", noisy(4.0, 1)), ("b", noisy(4.4, 2, device="other"))):
        save(profile, tmp_path / name, only=["profile.json"])
    return [str(tmp_path / name) for name in "ab"]


def test_the_slower_operation_is_marked(folders, capsys) -> None:
    assert main(["report", "diff", *folders]) == 0
    out = capsys.readouterr().out
    line = next(text for text in out.splitlines() if "conv2d" in text)
    assert "*" in line
    assert "relu" in out
    assert "device differs: None before, other after" in out
    assert "corrected for 3 tests at 5 %" in out


def test_json_has_all_operations(folders, capsys) -> None:
    assert main(["report", "diff", *folders, "--json", "--top", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [op["op"] for op in found["ops"]] == ["conv2d", "relu"]
    assert found["ops"][0]["significant"]
    assert found["ops"][0]["ratio"] == pytest.approx(1.1, rel=0.03)


def test_mistakes_are_told(folders, capsys, tmp_path) -> None:
    assert main(["report", "diff", folders[0], str(tmp_path / "none")]) == 2
    assert "is no profile" in capsys.readouterr().err
    assert main(["report", "diff", *folders, "--top", "0"]) == 2
    assert "--top 0: choose 1 or more" in capsys.readouterr().err
    assert main(["report", "same", *folders]) == 2
    assert "invalid choice" in capsys.readouterr().err


def test_an_old_profile_is_refused(folders, capsys, tmp_path) -> None:
    (tmp_path / "a" / "profile.json").write_text('{"format": 0}')
    assert main(["report", "diff", *folders]) == 2
    assert "no profile of format 1" in capsys.readouterr().err
