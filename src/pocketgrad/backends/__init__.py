"""Backends: where a plan runs. Opened by selector; those that may be absent are imported late."""

from __future__ import annotations

from pocketgrad.backends.api import Backend


def open_backend(selector: str = "auto") -> Backend:
    """The backend a selector means: auto, reference, null, cpu, gpu, pocl, 'pocl:0', a name."""
    if selector == "reference":
        from pocketgrad.backends.reference import ReferenceBackend

        return ReferenceBackend()
    if selector == "null":
        from pocketgrad.backends.null import NullBackend

        return NullBackend()
    from pocketgrad.backends import platforms

    choice = platforms.choose(selector=selector)
    if choice.device is None:
        return open_backend(choice.backend)
    from pocketgrad.backends.opencl import OpenCLBackend

    return OpenCLBackend(choice.device)
