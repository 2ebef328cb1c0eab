"""Compares what the driver lists with what is on the PCI bus: a card that never came up is no silence, and one that fell off is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.nvidia.watch.event import Watched, Where, event
from collectors.nvidia.watch.said import Said
from collectors.procfs.pci import PciBus, PciDevice
from schemas.identity import normal_bdf
from schemas.telemetry import v1

VENDOR_ID: Final = 0x10DE
_GPU_CLASSES: Final = frozenset({0x0300, 0x0302, 0x0380, 0x1200})
"""Base class and subclass: VGA, 3D, other display, processing accelerator. NVSwitches are bridges (0680), audio is 0403."""


@dataclass(frozen=True, slots=True)
class News:
    """`look_anew`: the driver has a card that this session does not list; a new session shows it if it works."""

    events: tuple[v1.DeviceEvent, ...] = ()
    look_anew: bool = False


def expected(devices: Iterable[PciDevice], given: frozenset[str] | None) -> dict[str, PciDevice]:
    """GPUs by address that NVML of this place should list. `given` are those that the driver shows here (None: it says nothing).

    Left out: virtual functions of a vGPU host, cards bound to another driver (vfio-pci for a virtual machine), and cards that the driver
    has but this container was not given.
    """
    return {
        device.bdf: device
        for device in devices
        if device.class_code >> 8 in _GPU_CLASSES
        and not device.virtual
        and (not device.driver or (device.driver == "nvidia" and (given is None or device.bdf in given)))
    }


class BusCheck:
    """Call `look` with the slow cadence. `proc_folder` is the host's /proc, where the driver lists its cards."""

    def __init__(self, bus: PciBus, where: Where, proc_folder: Path = Path("/proc")) -> None:
        self._bus, self._where = bus, where
        self._given_folder = proc_folder / "driver/nvidia/gpus"
        self._known: dict[str, Watched] = {}
        self._on_bus: set[str] = set()
        self._suspects: frozenset[str] = frozenset()
        self._said_missing: frozenset[str] = frozenset()
        self._said_gone = Said()

    def look(self, cards: Iterable[Watched], now_ns: int) -> News:
        """Compare; `cards` are those that the driver lists, lost ones included. A card is called missing at the second look without it."""
        listed = {card.bdf: card for card in cards if card.bdf}
        self._known |= listed
        devices = self._bus.devices(VENDOR_ID)
        if devices is None:
            return News()
        there = {device.bdf: device for device in devices}
        unlisted = {bdf: device for bdf, device in expected(devices, self._given()).items() if bdf not in listed}
        again = {bdf: device for bdf, device in unlisted.items() if bdf in self._suspects}
        events = [self._missing(device, now_ns) for bdf, device in again.items() if bdf not in self._said_missing]
        if self._said_missing and not unlisted:  # of the whole source: who was missing may never have had a name
            events.append(event(self._where, "added", now_ns, "the driver shows every GPU of the PCI bus again", "info"))
        self._said_missing = frozenset(again) if unlisted else frozenset()
        events += self._gone(there, now_ns)
        look_anew = any(bdf not in self._suspects for bdf in unlisted)
        self._suspects = frozenset(unlisted)
        return News(tuple(events), look_anew)

    def _gone(self, there: Mapping[str, PciDevice], now_ns: int) -> list[v1.DeviceEvent]:
        """Cards that were on the bus and are not any more."""
        events = []
        for bdf, card in self._known.items():
            if bdf in there:
                self._on_bus.add(bdf)
                self._said_gone.over(bdf)
            elif bdf in self._on_bus and self._said_gone.first(bdf):
                text = f"{card.label} is not on the PCI bus any more: it lost power or its link, or was taken out; see dmesg, reseat it"
                events.append(event(self._where, "lost", now_ns, text, "critical", uid=card.uid, bdf=bdf, action="check_hardware"))
        return events

    def _missing(self, device: PciDevice, now_ns: int) -> v1.DeviceEvent:
        known = self._known.get(device.bdf)
        name = known.label if known is not None else f"a GPU (10de:{device.device_id:04x}) at {device.bdf}"
        if device.driver:
            text = f"{name} is on the PCI bus and bound to the NVIDIA driver, which does not show it: see dmesg for RmInitAdapter or Xid"
        else:
            text = f"{name} is on the PCI bus and no driver is bound to it: load the NVIDIA driver, and see dmesg why it refused the card"
        uid = known.uid if known is not None else ""
        return event(self._where, "missing", now_ns, text, "critical", uid=uid, bdf=device.bdf, action="check_hardware")

    def _given(self) -> frozenset[str] | None:
        try:
            names = [folder.name for folder in self._given_folder.iterdir()]
        except OSError:
            return None
        return frozenset(normal_bdf(name) for name in names if name.count(":") == 2)
