"""Read files so that what fails is said with the name of the file and the place in it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pocketgrad.base.errors import DataError

_CHUNK_NBYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, unpacked on the fly where it is gzip by its first bytes, whatever its name."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            if not packed:
                yield file
                return
            with gzip.open(file) as unpacked:
                yield unpacked  # type: ignore[misc]  # GzipFile reads like a file, is not typed so
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"cannot read '{path}': {reason}; check the path and its rights") from error


def read_up_to(file: BinaryIO, path: Path, nbytes: int) -> bytes:
    """At most ``nbytes`` bytes; a damaged gzip stream is an error that says where it breaks."""
    parts: list[bytes] = []
    got = 0
    try:
        while got < nbytes and (part := file.read(min(nbytes - got, _CHUNK_NBYTES))):
            parts.append(part)
            got += len(part)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"'{path}' is damaged or cut off: its gzip stream breaks in the "
            f"{_CHUNK_NBYTES >> 20} MiB after byte {got} of the unpacked content ({error}); "
            "fetch it again"
        ) from error
    return b"".join(parts)


def read_text(path: Path) -> str:
    """All of a text file, plain or gzip; one that is not UTF-8 is an error that names the byte."""
    with opened(path) as file:
        body = read_up_to(file, path, 1 << 40)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"'{path}' is not UTF-8 text: byte {error.start} (line {line}) is "
            f"0x{body[error.start]:02x}; convert it, for instance with iconv -t utf-8"
        ) from None


def read_whole(path: Path) -> bytes:
    """All bytes of a file as it lies on disk."""
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"cannot read '{path}': {reason}; check the path and its rights") from error
