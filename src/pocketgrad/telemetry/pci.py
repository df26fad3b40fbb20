"""Places on the bus, which a boot does not change, and the graphics cards at them."""

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


def bus_address(machine: Machine, folder: str) -> str:
    """The place on the bus of what a class folder stands for, or else the folder's name."""
    about = dict(fields(machine.get(f"{folder}/device/uevent") or "", "="))
    stated = about.get("PCI_SLOT_NAME") or machine.get(f"{folder}/device/address")
    return stated or folder.rsplit("/", 1)[-1]


def cards(machine: Machine, vendor: str) -> list[Card]:
    """The cards of one vendor (its PCI number), by place."""
    found = []
    for name in machine.names(DRM, r"card\d+"):
        folder = f"{DRM}/{name}"
        if machine.get(f"{folder}/device/vendor") == vendor:
            found.append(Card(folder, bus_address(machine, folder)))
    return sorted(found, key=lambda card: card.slot)
