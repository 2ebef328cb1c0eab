"""Driver, library and cards: what NVML said, held against the kernel module, the device files and the PCI bus."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import Final

from collectors.nvidia.remedy import why
from collectors.nvidia.watch.bus import VENDOR_ID, expected
from collectors.procfs.pci import PciBus
from schemas.identity import normal_bdf
from xpulse.doctor import Diagnosis
from xpulse.node_doctor.look import HANGS, CardLook
from xpulse.node_doctor.symbols import LOST
from xpulse.node_doctor.where import Where

EVERYTHING: Final = "everything that the cards say"
_MODULE_VERSIONS: Final = {
    "/sys/module/nvidia/version": r"^([\d.]+)",
    "/proc/driver/nvidia/version": r"Kernel Module.*?\s(\d+\.\d[\d.]*)\s",
}
_LIBRARY_NOT_FOUND: Final = 12
_NOT_LOADED: Final = 9
_NO_PERMISSION: Final = 4
_UNKNOWN: Final = 999


def library(where: Where) -> Iterator[Diagnosis]:
    """Whether there is a session to be had, and of which versions."""
    look = where.driver
    if look.bindings:
        yield Diagnosis("problem", "bindings", look.bindings, lost="calls may be those of another release")
    if not look.trouble:
        if look.cards:
            yield Diagnosis("good", "driver", f"{look.driver}, NVML {look.library}, CUDA {look.cuda or '?'}, {_count(len(look.cards))}")
        else:
            text = f"{look.driver} answers and lists no card"
            yield Diagnosis("problem", "driver", text, "give the container its devices, or see dmesg for why none came up", EVERYTHING)
        return
    what, _, remedy = look.trouble.partition("; ")
    if look.code in (_LIBRARY_NOT_FOUND, _NOT_LOADED) and not _on_bus(where):
        yield Diagnosis("note", "driver", "no NVIDIA card and no NVIDIA driver on this machine")
    elif look.code == _UNKNOWN and where.in_container:
        taken = where.open_error("/dev/nvidiactl", os.O_RDWR) == errno.EPERM
        said = "NVML says Unknown Error (999)" + (" and /dev/nvidiactl may not be opened" if taken else "")
        text = f"{said}: a reload of systemd or the container runtime took this container's devices away"
        remedy = "restart the container; lasting: use CDI, or run the agent with runtimeClassName nvidia"
        yield Diagnosis("problem", "driver", text, remedy, EVERYTHING)
    else:
        yield Diagnosis("problem", "driver", what, remedy, EVERYTHING)


def versions(where: Where) -> Iterator[Diagnosis]:
    """The library must be of the release of the loaded kernel module."""
    module = _module_version(where)
    if module and where.driver.driver and module != where.driver.driver:
        text = f"the kernel module is {module}, the library {where.driver.driver}"
        yield Diagnosis("problem", "versions", text, "reboot, or unload and load the module: the driver was upgraded under it", EVERYTHING)
    elif module:
        yield Diagnosis("good", "versions", f"kernel module {module}")
    elif where.driver.driver:
        yield Diagnosis("note", "versions", "the kernel module's version cannot be read (/proc/driver/nvidia, /sys/module/nvidia)")


def symbols(where: Where) -> Iterator[Diagnosis]:
    """What the library is too old for."""
    for symbol in where.driver.missing:
        text = f"the library of driver {where.driver.driver} has no {symbol}"
        yield Diagnosis("note", "old driver", text, "a newer driver has it", LOST.get(symbol, "unknown"))


def device_files(where: Where) -> Iterator[Diagnosis]:
    """/dev/nvidiactl and one file for each card: read and write."""
    control = where.open_error("/dev/nvidiactl", os.O_RDWR)
    if control == errno.ENOENT:
        if where.driver.cards and not where.path("/dev/dxg").exists():
            yield Diagnosis("note", "device files", "NVML answers although there is no /dev/nvidiactl: the library is not NVIDIA's own")
        return
    if control:
        said = f"/dev/nvidiactl: {os.strerror(control)}"
        remedy = "give the container its devices again" if control == errno.EPERM else "let the agent's user read and write /dev/nvidia*"
        yield Diagnosis("problem", "device files", said, remedy, EVERYTHING)
    cards = sorted(path.name for path in where.path("/dev").glob("nvidia[0-9]*"))
    closed = [f"/dev/{name}" for name in cards if not where.may(f"/dev/{name}", os.R_OK | os.W_OK)]
    if closed:
        text = f"may not be read and written: {', '.join(closed)}"
        yield Diagnosis("problem", "device files", text, "let the agent's user read and write /dev/nvidia*", "these cards")
    elif not control:
        yield Diagnosis("good", "device files", f"/dev/nvidiactl and {_count(len(cards))}")


def cards(where: Where) -> Iterator[Diagnosis]:
    """Each card's state, and those on the PCI bus that NVML does not list."""
    for card in where.driver.cards:
        if card.code:
            yield Diagnosis("problem", f"card {card.index}", *_split(why(card.code, "opening the card")), lost="everything of this card")
            continue
        yield from _settings_of(card)
    if where.driver.code == HANGS or not _on_bus(where):
        return
    listed = {normal_bdf(card.bdf) for card in where.driver.cards if card.bdf}
    silent = sorted(bdf for bdf in _on_bus(where) if bdf not in listed)
    unread = [card for card in where.driver.cards if card.code]
    if where.driver.cards and len(silent) > len(unread):
        text = f"on the PCI bus and not in NVML: {', '.join(silent)}"
        yield Diagnosis("problem", "PCI bus", text, "see dmesg for RmInitAdapter or Xid; in a container: give it all cards", "these cards")
    elif where.driver.trouble:
        text = f"{_count(len(silent))} on the PCI bus: {', '.join(silent)}"
        yield Diagnosis("problem", "PCI bus", text, "mend the driver (above)", EVERYTHING)


def _settings_of(card: CardLook) -> Iterator[Diagnosis]:
    subject = f"card {card.index}"
    if card.persistence is False:
        text = f"{card.name}: the persistence mode is off"
        lost = "counters begin anew, and a first read takes seconds, whenever nobody uses the card"
        yield Diagnosis("note", subject, text, "run nvidia-persistenced, or nvidia-smi -pm 1", lost)
    if not card.has_gpm:
        lost = "activity of SMs, tensor cores and memory" + ("; how busy its MIG instances are" if card.mig else "")
        remedy = "where dcgm-exporter has DCGM_FI_PROF_* fields, let the plugin dcgm read it"
        yield Diagnosis("note", subject, f"{card.name}: no GPM (Hopper and newer have it)", remedy, lost)
    if card.mig is not None and card.mig != card.mig_pending:
        text = f"{card.name}: MIG is {'on' if card.mig else 'off'} and will be {'on' if card.mig_pending else 'off'} after a reset"
        yield Diagnosis("note", subject, text, "drain the node and reset the card: nvidia-smi --gpu-reset")
    if card.instance_code:
        what, remedy = _split(why(card.instance_code, "opening a MIG instance"))
        if card.instance_code == _NO_PERMISSION:
            what, remedy = "its MIG instances may not be looked at", "set NVIDIA_MIG_MONITOR_DEVICES=all, or mount /dev/nvidia-caps"
        yield Diagnosis("problem", subject, f"{card.name}: {what}", remedy, "its instances")
    elif card.mig:
        level, text = ("good", f"MIG, {card.instances} instances") if card.instances else ("note", "MIG is on and it has no instance")
        yield Diagnosis("good" if level == "good" else "note", subject, f"{card.name}: {text}")


def _on_bus(where: Where) -> list[str]:
    """Addresses of the cards that NVML should list here."""
    devices = PciBus(where.path("/sys/bus/pci/devices")).devices(VENDOR_ID) or ()
    try:
        names = [folder.name for folder in where.path("/proc/driver/nvidia/gpus").iterdir()]
    except OSError:
        return sorted(expected(devices, None))
    return sorted(expected(devices, frozenset(normal_bdf(name) for name in names if name.count(":") == 2)))


def _module_version(where: Where) -> str:
    for path, pattern in (
        ("/sys/module/nvidia/version", r"^([\d.]+)"),
        ("/proc/driver/nvidia/version", r"Kernel Module.*?\s(\d+\.\d[\d.]*)\s"),
    ):
        try:
            found = re.search(pattern, where.path(path).read_text(errors="replace"))
        except OSError:
            continue
        if found:
            return found[1]
    return ""


def _split(text: str) -> tuple[str, str]:
    what, _, remedy = text.partition("; ")
    return what, remedy


def _count(cards: int) -> str:
    return f"{cards} card{'' if cards == 1 else 's'}"
