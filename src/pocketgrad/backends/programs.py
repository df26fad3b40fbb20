"""Kernel sources to built programs: few programs, built side by side, kept on disk.

Every distinct source becomes one kernel. A program is the common header and several sources, each
between its macros and their end. What was built is stored by device, driver, options and text.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pocketgrad.base.config import settings
from pocketgrad.base.errors import DeviceError
from pocketgrad.kernels.bundle import entry_name, function_name
from pocketgrad.kernels.spec import KernelSource, template

OPTIONS = ("-cl-std=CL1.2",)
KERNELS_PER_PROGRAM = 12  # enough to share the cost of a build, few enough to build side by side


# While a kernel's text is read as a function of an item's number, in a program that bundles some.
# Never inlined: Intel's compiler 2026.22 dies in its pass instcombine on some kernels made of many.
_AS_FUNCTION = (
    ("kernel", "static __attribute__((noinline))"),
    ("reqd_work_group_size(x, y, z)", "unused"),
    ("get_global_id(axis)", "bundle_item"),
)


def program_text(sources: Sequence[KernelSource], names: Sequence[str]) -> str:
    """One program of several sources, each with its own entry name and macros.

    ENTRY_NAME begins the names of functions that a source has beside its kernel.
    """
    parts = [template("common")]
    functions = dict.fromkeys(f for source in sources for f in source.functions)
    for source in functions:
        name = function_name(source)
        entry = ("ENTRY(...)", f"{name}(const size_t bundle_item, __VA_ARGS__)")
        parts += _lines(source, (("ENTRY_NAME", name), entry, *_AS_FUNCTION))
    for source, name in zip(sources, names, strict=True):
        parts += _lines(source, (("ENTRY_NAME", name), ("ENTRY", name)))
    return "\n".join(parts) + "\n"


def _lines(source: KernelSource, more: tuple[tuple[str, str], ...]) -> list[str]:
    macros = (*more, *source.defines)
    ended = [key.partition("(")[0] for key, _ in macros]
    return [
        *(f"#define {key} {value}" for key, value in macros),
        source.text,
        *(f"#undef {key}" for key in (*ended, *_own_macros(source.text))),
    ]


def _own_macros(text: str) -> list[str]:
    """Names a source defines itself, which must end with it."""
    lines = (line.split() for line in text.splitlines() if line.startswith("#define "))
    return list(dict.fromkeys(words[1].partition("(")[0] for words in lines))


def build_all(
    context: Any, device: Any, sources: Sequence[KernelSource]
) -> dict[KernelSource, Any]:
    """A program for every source (several share one); kernels are made by ``entry_name``."""
    shares = _shares(sorted(set(sources), key=entry_name))
    if not shares:
        return {}
    with ThreadPoolExecutor(max_workers=max(1, os.cpu_count() or 1)) as pool:
        programs = list(pool.map(lambda share: _build(context, device, share), shares))
    return {s: p for share, p in zip(shares, programs, strict=True) for s in share}


def _shares(sources: Sequence[KernelSource]) -> list[list[KernelSource]]:
    """Sources that are built together: so many kernels, those in bundles counted."""
    shares: list[list[KernelSource]] = []
    full = KERNELS_PER_PROGRAM
    for source in sources:
        size = max(1, len(source.functions))
        if full + size > KERNELS_PER_PROGRAM:
            shares.append([])
            full = 0
        shares[-1].append(source)
        full += size
    return shares


def _build(context: Any, device: Any, share: Sequence[KernelSource]) -> Any:
    import pyopencl as cl

    text = program_text(share, [entry_name(s) for s in share])
    path = _cache_path(device, text)
    if path.is_file():
        try:
            return cl.Program(context, [device], [path.read_bytes()]).build()
        except cl.Error:
            path.unlink(missing_ok=True)  # built by a driver that is gone; build it anew
    program: Any = cl.Program(context, text)
    try:
        program.build(options=list(OPTIONS), devices=[device])
    except cl.Error as error:
        raise DeviceError(
            f"device {device.name} could not build a kernel: {_first_error(str(error))}. "
            "Run 'pocketgrad doctor' to have its kernels checked, or choose another device"
        ) from error
    _store(path, program.get_info(cl.program_info.BINARIES)[0])
    return program


def _first_error(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    return lines[0] if lines else log.strip().partition("\n")[0]


def _cache_path(device: Any, text: str) -> Path:
    identity = (device.platform.version, device.name, device.driver_version, *OPTIONS, text)
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()
    return settings().cache_dir / "programs" / digest[:2] / f"{digest}.bin"


def _store(path: Path, binary: bytes) -> None:
    """Write whole or not at all; without a writable cache the next start builds again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(binary)
        Path(file.name).replace(path)
    except OSError:
        return
