"""Where OpenCL drivers announce themselves: .icd files, vendor libraries, the library in a wheel.

Only finds them and writes folders of .icd files; loading a library is left to `probe` in a child.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pocketgrad.backends.cachefile import write_whole
from pocketgrad.base.config import Settings

SYSTEM_FOLDER = Path("/etc/OpenCL/vendors")
# Drivers that come without an .icd file: Android's vendor partition, NVIDIA's container mounts.
BARE_LIBRARIES = (
    Path("/vendor/lib64/libOpenCL.so"),
    Path("/system/vendor/lib64/libOpenCL.so"),
    Path("/system/lib64/libOpenCL.so"),
    Path("/usr/local/nvidia/lib64/libnvidia-opencl.so.1"),
    Path("/usr/lib/wsl/lib/libnvidia-opencl.so.1"),
)
# Intel's wheel installs .icd files that were never relocated; they name this folder.
UNRELOCATED = "/opt/anaconda1anaconda2anaconda3"
MARKER = "made-by-pocketgrad"  # a file in every folder of .icd files that we write


@dataclass(frozen=True, slots=True)
class Icd:
    """One driver as found: the library it names, and where we read that."""

    library: str  # what is handed to dlopen: an absolute path, or a bare name
    origin: str  # the .icd file, or the wheel
    problem: str = ""  # why the announcement itself cannot be used

    @property
    def path(self) -> Path | None:
        """The library's own file, links followed; None where it cannot be found."""
        return _resolve(self.library)


def _resolve(library: str) -> Path | None:
    if not library:
        return None
    if "/" in library:
        candidates = [Path(library)]
    else:
        multiarch = sysconfig.get_config_var("MULTIARCH") or "lib"
        folders = ("/usr/local/lib", f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64")
        prefix = f"{sys.base_prefix}/lib"
        candidates = [
            Path(f, library) for f in (*folders, "/usr/lib64", "/lib", "/usr/lib", prefix)
        ]
    return next((c.resolve() for c in candidates if c.is_file()), None)


def _read_icd(file: Path) -> Icd:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        return Icd("", str(file), f"cannot read {file}: {why}")
    library = lines[0].strip()
    return Icd(library, str(file), "" if library else f"{file} is empty; it should name a library")


def _in_folder(folder: Path) -> list[Icd]:
    try:
        files = sorted(folder.glob("*.icd"))
    except OSError as error:
        return [Icd("", str(folder), f"cannot list {folder}: {error.strerror}")]
    return [_read_icd(file) for file in files]


def wheel_library(
    distribution: str = "intel-opencl-rt", stem: str = "libintelocl.so"
) -> Path | None:
    """The driver inside an installed wheel, found by the wheel's own list of files."""
    from importlib import metadata  # costs 15 ms; only to list drivers

    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        return None
    names = (f for f in files if f.name == stem or f.name.startswith(f"{stem}."))
    found = sorted((Path(str(f.locate())) for f in names), key=lambda p: len(p.name))
    return next((p.resolve() for p in found if p.is_file()), None)


def _named_by_user(place: str) -> list[Icd]:
    """What a user's OCL_ICD_VENDORS means to the loader: a folder, an .icd file, or a library."""
    path = Path(place)
    if path.is_dir():
        return _in_folder(path)
    if path.suffix == ".icd":
        return [_read_icd(path)]
    return [Icd(place, "OCL_ICD_VENDORS")]


def discover(config: Settings) -> tuple[Icd, ...]:
    """Every announced driver, once each; a user's OCL_ICD_VENDORS replaces the places we know."""
    place = config.icd_vendors
    # A folder we made ourselves was inherited from a parent process: no choice of the user.
    if place and not Path(place, MARKER).is_file():
        return _distinct(_named_by_user(place))
    found = _in_folder(SYSTEM_FOLDER)
    own = Path(sys.base_prefix, "etc/OpenCL/vendors")  # Termux and conda
    if own != SYSTEM_FOLDER:
        found += _in_folder(own)
    wheel = wheel_library()
    if wheel is not None:
        found = [icd for icd in found if not icd.library.startswith(UNRELOCATED)]
        found.append(Icd(str(wheel), "the wheel intel-opencl-rt"))
    found += [Icd(str(path), str(path)) for path in BARE_LIBRARIES if path.is_file()]
    return _distinct(found)


def _distinct(icds: Iterable[Icd]) -> tuple[Icd, ...]:
    seen: dict[str, Icd] = {}
    for icd in icds:
        seen.setdefault(str(icd.path or icd.library or icd.origin), icd)
    return tuple(seen.values())


def folder_of(icds: Sequence[Icd], config: Settings) -> Path:
    """A folder announcing exactly ``icds``, named by its content; a temporary one where the cache
    cannot be written, which the survey notes."""
    libraries = [icd.library for icd in icds]
    name = hashlib.sha256("\n".join(libraries).encode()).hexdigest()[:16]
    folder = config.cache_dir / "icd" / name
    try:
        _write_folder(folder, libraries)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="pocketgrad-icd-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _write_folder(folder, libraries)
    return folder


def _write_folder(folder: Path, libraries: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).touch()
    for index, library in enumerate(libraries):
        file = folder / f"{index:02d}.icd"
        if not file.is_file() or file.read_text(encoding="utf-8") != f"{library}\n":
            write_whole(file, f"{library}\n")
