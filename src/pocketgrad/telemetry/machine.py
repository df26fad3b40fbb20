"""The machine that samplers see: files under a root, and commands. Both can be replaced.

Nothing else in this package opens a file or starts a program. It interprets no content.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pocketgrad.base.errors import PocketgradError

T = TypeVar("T")
COMMAND_TIMEOUT_S = 5.0
_FIRST_READ = 4096  # a page holds any attribute of sysfs; larger files of /proc grow it once

# Those a sensor may report now and not report later: powered off, busy, suspended, converting.
PASSING = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINVAL,
        errno.EIO,
        errno.ENODATA,
        errno.ENODEV,
        errno.ENXIO,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)
_REOPEN = frozenset({errno.ENODEV, errno.ENODATA, errno.EIO, errno.ESTALE, errno.EBADF})


class UnreadableError(PocketgradError):
    """A source gives no value; ``lasting`` if waiting will not change that."""

    def __init__(self, reason: str, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


class Files(Protocol):
    """The part of a file system that sensors need; paths are absolute, errors are OSError."""

    def read(self, path: str, keep: bool) -> str:
        """The whole content; ``keep`` says that it will be read again and again."""

    def names(self, folder: str) -> list[str]:
        """What lies in a folder."""


class LocalFiles:
    """Files under a root, those that are polled kept open."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = str(root).rstrip("/")
        self._open: dict[str, int] = {}
        self._size: dict[str, int] = {}

    def read(self, path: str, keep: bool) -> str:
        """By pread on an open descriptor: rereading needs no new look-up of the path."""
        if not keep:
            descriptor = self._opened(path)
            try:
                return self._all(path, descriptor)
            finally:
                os.close(descriptor)
        if path not in self._open:
            self._open[path] = self._opened(path)
        try:
            return self._all(path, self._open[path])
        except OSError as error:
            os.close(self._open.pop(path))
            if error.errno not in _REOPEN:  # after hotplug or suspend the old one stays dead
                raise
        self._open[path] = self._opened(path)
        return self._all(path, self._open[path])

    def names(self, folder: str) -> list[str]:
        """As the system lists them."""
        return [entry.name for entry in os.scandir(self._root + folder)]

    def close(self) -> None:
        """Close what was kept open."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _opened(self, path: str) -> int:
        return os.open(self._root + path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def _all(self, path: str, descriptor: int) -> str:
        size = self._size.get(path, _FIRST_READ)
        content = os.pread(descriptor, size, 0)
        while len(content) == size:
            size *= 2
            self._size[path] = size
            content = os.pread(descriptor, size, 0)
        return content.decode("utf-8", "replace")


def run_command(command: Sequence[str]) -> str:
    """What a program prints; UnreadableError when it is missing, fails, or hangs."""
    name = command[0]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise UnreadableError(f"the command {name} is not installed") from None
    except PermissionError:
        raise UnreadableError(f"{name}: permission denied") from None
    except subprocess.TimeoutExpired:
        message = f"{' '.join(command)} gave no answer in {COMMAND_TIMEOUT_S:g} s"
        raise UnreadableError(message, lasting=False) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        why = said[-1] if said else "no message"
        raise UnreadableError(f"{' '.join(command)} failed with code {done.returncode}: {why}")
    return done.stdout


def no_nvml() -> Any:
    """What a folder or a recording answers to whoever asks for NVML."""
    raise UnreadableError("NVML is a library of this computer's, not part of a recording")


def local_nvml() -> Any:
    """The library pynvml, initialised; it has no types."""
    try:
        import pynvml
    except ImportError:
        raise UnreadableError(
            "pynvml is not installed; `pip install 'pocketgrad[nvml]'` where there is a card"
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise UnreadableError(f"NVML: {error}") from None
    return pynvml


@dataclass(frozen=True, slots=True)
class Machine:
    """Where sensors are looked for: this computer, a folder, or a recording."""

    files: Files = field(default_factory=LocalFiles)
    run: Callable[[Sequence[str]], str] = run_command
    ticks_per_s: int = 100  # USER_HZ, which /proc/stat counts in
    page_nbytes: int = 4096
    nvml: Callable[[], Any] = no_nvml
    process: str = "self"  # whose memory and clocks are sampled: a folder of /proc

    def text(self, path: str, keep: bool = False) -> str:
        """A file's content without the white space around it; never empty."""
        try:
            content = self.files.read(path, keep).strip()
        except OSError as error:
            raise UnreadableError(_reason(path, error), error.errno not in PASSING) from None
        if not content:
            raise UnreadableError(f"{path} is empty", lasting=False)
        return content

    def value(self, path: str, parse: Callable[[str], T]) -> T:
        """A polled file, parsed; a ValueError of the parser names what it found."""
        text = self.text(path, keep=True)
        try:
            return parse(text)
        except (ValueError, IndexError):
            raise UnreadableError(f"{path} holds {_short(text)}, which is no value") from None

    def get(self, path: str) -> str | None:
        """A file's content, or None where it cannot be had: for names and labels."""
        try:
            return self.text(path)
        except UnreadableError:
            return None

    def names(self, folder: str, pattern: str = "") -> list[str]:
        """What lies in a folder and matches, in counting order; empty if there is none."""
        try:
            names = self.files.names(folder)
        except OSError:
            return []
        return sorted((n for n in names if re.fullmatch(pattern or ".*", n)), key=_counting)

    def why_empty(self, folder: str) -> str:
        """Why a folder has nothing to offer."""
        try:
            names = self.files.names(folder)
        except OSError as error:
            return _reason(folder, error)
        return f"{folder} has no such entry" if names else f"{folder} is empty"


def this_machine() -> Machine:
    """The computer this runs on."""
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    return Machine(LocalFiles(), run_command, ticks, page, local_nvml)


def _reason(path: str, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return f"{path} does not exist"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"permission denied: {path}"
    return f"{path}: {os.strerror(error.errno) if error.errno else error}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def _counting(name: str) -> list[tuple[int, str]]:
    """Sorts cpu2 before cpu10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
