"""Which backend a trainer computes on, and why."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pocketgrad.backends import open_backend
from pocketgrad.backends.api import Backend
from pocketgrad.engine.selfcheck import checked

LOG = logging.getLogger("pocketgrad")


@dataclass(frozen=True)
class Place:
    """An opened backend and the reason it was taken."""

    backend: Backend
    why: str

    def __str__(self) -> str:
        name = self.backend.name
        about = f" ({self.backend.info.name})" if self.backend.info.name.lower() != name else ""
        return f"{name}{about}"


def open_place(device: str | Backend) -> Place:
    """The backend for a selector ('auto', 'pocl', 'reference' …), or the one given."""
    if not isinstance(device, str):
        return Place(device, "the backend given")
    if device in ("reference", "null"):
        return Place(open_backend(device), "asked for by name")
    from pocketgrad.backends import platforms  # finds drivers: only when one is wanted

    choice = platforms.choose(selector=device)
    if choice.device is None:
        if device == "auto":
            LOG.warning("training on the reference backend: %s", choice.why)
        return Place(open_backend(device), choice.why)
    place = Place(checked(open_backend(choice.device.ident)), choice.why)
    again = platforms.choose(selector=device)  # knowing what the check of a first use found
    if again.device is None or again.device.ident == choice.device.ident:
        return place
    return Place(checked(open_backend(again.device.ident)), again.why)
