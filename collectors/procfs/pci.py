"""Which devices of a vendor are on the PCI bus, from /sys: cached by the kernel, so a card that hangs does not hang the reader.

`config` and `resource` files are never opened: those reach the device itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemas.identity import normal_bdf

_NAME: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One function on the bus. `bdf` is dddd:bb:dd.f, `class_code` 24 bits, base class first; `driver` empty where none is bound."""

    bdf: str
    device_id: int
    class_code: int
    driver: str
    virtual: bool
    """It is a virtual function (SR-IOV) of another device."""


class PciBus:
    """`root` is /sys/bus/pci/devices, or a copy of it."""

    def __init__(self, root: Path = Path("/sys/bus/pci/devices")) -> None:
        self._root = root

    def devices(self, vendor_id: int) -> tuple[PciDevice, ...] | None:
        """The vendor's devices by address; None where the bus cannot be seen at all (no PCI, or /sys is not mounted)."""
        try:
            folders = sorted(self._root.iterdir())
        except OSError:
            return None
        if not folders:
            return None
        found = []
        for folder in folders:
            if not _NAME.fullmatch(folder.name) or _number(folder / "vendor") != vendor_id:
                continue
            device_id, class_code = _number(folder / "device"), _number(folder / "class")
            if device_id is None or class_code is None:
                continue  # it left the bus while it was read
            driver = folder / "driver"
            try:
                bound = driver.readlink().name
            except OSError:
                bound = ""
            found.append(PciDevice(normal_bdf(folder.name), device_id, class_code, bound, (folder / "physfn").is_symlink()))
        return tuple(found)


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(), 16)
    except (OSError, ValueError):
        return None
