"""Download a file once: resumed where it broke off, checked by SHA-256, moved into place."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pocketgrad.base.config import settings
from pocketgrad.base.errors import DataError
from pocketgrad.base.units import si

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from http.client import HTTPResponse

Progress = Callable[[str, int, int | None], None]  # file name, bytes so far, bytes in all if known

ATTEMPTS = 4  # in a row without one new byte, before giving up
RETRY_DELAY_S = 0.5  # before the second attempt; doubles each time
TIMEOUT_S = 30.0  # without one byte
_CHUNK_NBYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Remote:
    """A file in the network: where it is, what it must be."""

    url: str
    sha256: str
    nbytes: int | None = None

    @property
    def filename(self) -> str:
        """The last part of the address."""
        return Path(urlsplit(self.url).path).name


def cache_folder(name: str) -> Path:
    """Where downloads of that data set are kept."""
    return settings().cache_dir / "data" / name


def download_all(
    remotes: Sequence[Remote],
    folder: Path,
    *,
    searched: Sequence[Path] = (),
    progress: Progress | None = None,
) -> None:
    """Download what is missing; a failure also says where else was looked and what to do."""
    try:
        for remote in remotes:
            download(remote, folder, progress)
    except DataError as error:
        looked = ", ".join(f"'{place}'" for place in searched) or f"'{folder}'"
        raise DataError(
            f"{error}. Looked before in {looked}. With a copy from elsewhere, give its folder"
        ) from error


def download(remote: Remote, folder: Path, progress: Progress | None = None) -> Path:
    """The file in ``folder``, downloaded if it is not there; another process may ask for it too."""
    target = folder / remote.filename
    if _complete(target, remote):
        return target
    with _disk(folder, remote):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder, remote):
        if _complete(target, remote):
            return target
        part = folder / f"{remote.filename}.part"
        _receive_all(remote, part, progress)
        _verify(remote, part)
        with _disk(part, remote):
            part.replace(target)
    return target


def _complete(target: Path, remote: Remote) -> bool:
    """Whether it is there; its content was checked before it was put there."""
    return target.is_file() and remote.nbytes in (None, target.stat().st_size)


def _receive_all(remote: Remote, part: Path, progress: Progress | None) -> None:
    from http.client import HTTPException
    from urllib.error import HTTPError

    best = _size(part)
    fruitless = 0
    while True:
        try:
            missing = _receive(remote, part, progress)
            if missing == 0:
                return
            reason = f"the connection closed {missing or 'some'} bytes early"
        except HTTPError as error:
            error.close()
            reason = f"the server answers {error.code} {error.reason}"
            if error.code == 416:  # what is here is longer than the file there
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                raise DataError(_failure(remote, reason)) from error
        except (OSError, HTTPException) as error:  # URLError, a timeout, a broken connection
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        size = _size(part)
        fruitless = 0 if size > best else fruitless + 1
        best = max(best, size)
        if fruitless >= ATTEMPTS:
            raise DataError(_failure(remote, f"{reason}, {ATTEMPTS} times in a row"))
        time.sleep(RETRY_DELAY_S * 2**fruitless)


def _receive(remote: Remote, part: Path, progress: Progress | None) -> int:
    """One connection, from where the part ends; how many bytes are still missing after it."""
    from urllib.request import Request, urlopen

    have = _size(part)
    if have and have == remote.nbytes:
        return 0
    if urlsplit(remote.url).scheme not in ("http", "https"):
        raise DataError(f"cannot download '{remote.url}': only http and https addresses are read")
    headers = {"User-Agent": "pocketgrad"} | ({"Range": f"bytes={have}-"} if have else {})
    with urlopen(Request(remote.url, headers=headers), timeout=TIMEOUT_S) as reply:
        start = have if _continues(reply, have) else 0
        length = reply.headers.get("Content-Length")
        total = start + int(length) if length is not None else remote.nbytes
        with _disk(part, remote):
            out = part.open("r+b" if start else "wb")
        with out:
            out.seek(start)
            got = _copy(reply, out, remote, (start, total), progress)
    return total - got if total is not None else 0


def _continues(reply: HTTPResponse, have: int) -> bool:
    """Whether the server sends what follows what is here; else it sends all from the start."""
    return (
        have > 0
        and reply.status == 206
        and reply.headers.get("Content-Range", "").startswith(f"bytes {have}-")
    )


def _copy(
    reply: HTTPResponse,
    out: IO[bytes],
    remote: Remote,
    span: tuple[int, int | None],
    progress: Progress | None,
) -> int:
    got, total = span
    while chunk := reply.read(_CHUNK_NBYTES):
        with _disk(Path(out.name), remote, got):
            write(out, chunk)
        got += len(chunk)
        if progress is not None:
            progress(remote.filename, got, total)
    with _disk(Path(out.name), remote, got):
        out.truncate()
        out.flush()
        os.fsync(out.fileno())
    return got


def write(out: IO[bytes], chunk: bytes) -> None:
    """Put a piece into the file, through to the system, so that a full disk shows here."""
    out.write(chunk)
    out.flush()


def _verify(remote: Remote, part: Path) -> None:
    import hashlib

    with _disk(part, remote), part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != remote.sha256:
        size = _size(part)
        part.unlink()
        raise DataError(
            f"'{remote.filename}' from {remote.url} is not the file expected: {size} bytes with "
            f"SHA-256 {found}, expected {remote.sha256}; it was deleted. Try again, or from "
            "another network"
        )


def _failure(remote: Remote, reason: str) -> str:
    return (
        f"cannot download '{remote.filename}' from {remote.url}: {reason}; "
        "check the network and run again, it goes on where it stopped"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


@contextmanager
def _disk(path: Path, remote: Remote, got: int = 0) -> Iterator[None]:
    """Tell trouble of the disk from trouble of the network: both are OSError."""
    try:
        yield
    except OSError as error:
        need = f" (has {si(got, 'B')} of {si(remote.nbytes, 'B')})" if remote.nbytes else ""
        raise DataError(
            f"cannot write '{path}'{need}: {error.strerror or error}; make room or give the "
            "rights and run again, or set POCKETGRAD_CACHE to another folder"
        ) from error


@contextmanager
def _locked(folder: Path, remote: Remote) -> Iterator[None]:
    """One process at a time on one file; on Windows, where there is no flock, the last one wins."""
    if sys.platform == "win32":
        yield
        return
    path = folder / f"{remote.filename}.lock"
    with _disk(path, remote):
        lock: IO[Any] = path.open("w")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
