"""Downloads against a server on this machine: resumed, checked, retried, never half in place."""

from __future__ import annotations

import hashlib
import importlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.helpers.file_server import Served, served

from pocketgrad.base.errors import DataError
from pocketgrad.data import Remote, download

FETCH = importlib.import_module("pocketgrad.data.fetch")
BODY = bytes(i * i % 251 for i in range(700_000))  # more than two pieces


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FETCH, "RETRY_DELAY_S", 0.0)


def remote(state: Served, body: bytes = BODY, nbytes: int | None = len(BODY)) -> Remote:
    return Remote(state.url, hashlib.sha256(body).hexdigest(), nbytes)


@pytest.mark.parametrize("nbytes", [None, len(BODY)])
def test_a_file_is_downloaded_once(tmp_path: Path, nbytes: int | None) -> None:
    with served(BODY) as state:
        paths = [download(remote(state, nbytes=nbytes), tmp_path / "a" / "b") for _ in range(2)]
        assert state.asked == [""]
    assert paths == [tmp_path / "a" / "b" / "file.bin"] * 2
    assert paths[0].read_bytes() == BODY
    assert not list(paths[0].parent.glob("*.part"))


def test_a_cut_connection_is_resumed_where_it_stopped(tmp_path: Path) -> None:
    with served(BODY, cuts=[300_000, 1, 0, 0, 100_000]) as state:
        assert download(remote(state), tmp_path).read_bytes() == BODY
        assert state.asked == [
            "",
            "bytes=300000-",
            *["bytes=300001-"] * 3,
            "bytes=400001-",
        ]


def test_a_part_left_by_an_earlier_run_is_continued(tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(BODY[:1234])
    with served(BODY) as state:
        assert download(remote(state), tmp_path).read_bytes() == BODY
        assert state.asked == ["bytes=1234-"]


def test_a_whole_part_only_needs_its_check(tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(BODY)
    with served(BODY) as state:
        assert download(remote(state), tmp_path).read_bytes() == BODY
        assert state.asked == []


def test_a_server_without_ranges_starts_over(tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"x" * 5000)
    with served(BODY, ranges=False, cuts=[400_000]) as state:
        assert download(remote(state), tmp_path).read_bytes() == BODY
        assert len(state.asked) == 2


def test_a_part_longer_than_the_file_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(BODY + b"more")
    with served(BODY) as state:
        assert download(remote(state), tmp_path).read_bytes() == BODY


def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    with served(BODY, statuses=[503, 429]) as state:
        assert download(remote(state), tmp_path).read_bytes() == BODY


def test_progress_grows_to_the_whole_also_over_a_cut(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    with served(BODY, cuts=[300_000]) as state:
        download(remote(state), tmp_path, lambda *call: seen.append(call))
    counts = [got for _, got, _ in seen]
    assert counts == sorted(counts)
    assert seen[-1] == ("file.bin", len(BODY), len(BODY))


def test_two_who_ask_at_once_share_one_download(tmp_path: Path) -> None:
    with served(BODY) as state, ThreadPoolExecutor(4) as pool:
        wanted = remote(state)
        paths = list(pool.map(lambda _: download(wanted, tmp_path), range(4)))
        assert {path.read_bytes() for path in paths} == {BODY}
        assert state.asked == [""]


def test_a_file_of_another_size_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"cut off by hand")
    with served(BODY) as state:
        assert download(remote(state), tmp_path).read_bytes() == BODY


def test_a_wrong_checksum_leaves_nothing_and_the_next_try_starts_anew(tmp_path: Path) -> None:
    with served(BODY[:-1] + b"!") as state, pytest.raises(DataError, match="SHA-256"):
        download(remote(state), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file.bin.lock"]
    with served(BODY) as state:
        assert download(remote(state), tmp_path).read_bytes() == BODY
