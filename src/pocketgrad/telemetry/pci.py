"""Graphics cards under /sys/class/drm by their place on the bus, which a boot does not change."""

from __future__ import annotations

from dataclasses import dataclass

from pocketgrad.telemetry.machine import Machine
from pocketgrad.telemetry.parse import fields

DRM = "/sys/class/drm"


@dataclass(frozen=True, slots=True)
class Card:
    """A card's folder, and its place on the bus or else its name."""

    folder: str
    slot: str


def cards(machine: Machine, vendor: str) -> list[Card]:
    """The cards of one vendor (its PCI number), by place."""
    found = []
    for name in machine.names(DRM, r"card\d+"):
        folder = f"{DRM}/{name}"
        if machine.get(f"{folder}/device/vendor") == vendor:
            about = dict(fields(machine.get(f"{folder}/device/uevent") or "", "="))
            found.append(Card(folder, about.get("PCI_SLOT_NAME", name)))
    return sorted(found, key=lambda card: card.slot)
