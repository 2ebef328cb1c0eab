"""The parts a card is cut into - MIG instances, vGPUs - looked for while everything runs, because they come and go under it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from collectors.nvidia.mig import Instance, instances
from collectors.nvidia.reply import Failed
from collectors.nvidia.source import Source
from collectors.nvidia.vgpu import Vgpu, read_utilization, vgpus
from schemas.builder import SampleBuilder
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collectors.nvidia.cards import Card, Say

LOOK_SECONDS: Final = 10.0
"""A handful of calls per card that is cut, or can be."""

_HOST_VGPU: Final = (3, 4)
"""nvmlGpuVirtualizationMode_t: host of vGPUs or of vSGA."""


class Partition(Protocol):
    """What the reader needs of a part; `gone` is set by a read that found it destroyed."""

    info: v1.DeviceInfo
    gone: bool

    def read(self, *, slow: bool) -> SampleBuilder: ...

    def close(self) -> None: ...


def look(source: Source, card: Card, reopen: Callable[[], None], say: Say, at: float) -> None:
    """Bring `card.parts` up to date. `reopen` makes the card's calls anew, where MIG was turned on or off."""
    if card.handle is None:
        return
    first, card.looked = not card.looked, True
    card.looked_at = at
    mode = source.ask(source.nvml.nvmlDeviceGetMigMode, card.handle)
    enabled = not isinstance(mode, Failed) and mode[0] == 1
    switched = enabled != card.mig
    if switched:
        card.mig = enabled
        reopen()
        card.looked_at = at
    before = dict(card.parts)
    found: dict[str, Partition] = {}
    if enabled:
        known = {uid: part for uid, part in before.items() if isinstance(part, Instance)}
        found |= instances(source, card.handle, card.info, known, profiled=card.has_gpm)
    else:
        for part in before.values():
            part.close()
    if card.virtualization in _HOST_VGPU:
        listed = vgpus(source, card.handle, card.info, {uid: part for uid, part in before.items() if isinstance(part, Vgpu)})
        found |= listed or {}
    card.parts = found
    if switched or (not first and before.keys() != found.keys()):
        _tell(say, card, before, found, switched=switched)


def due(card: Card, at: float) -> bool:
    """Whether to look now: at the first read, when a part was found destroyed, and each ten seconds where a card can be cut."""
    if card.looked_at == float("-inf") or any(part.gone for part in card.parts.values()):
        return True
    can_be_cut = card.mig or bool(card.parts) or card.virtualization in _HOST_VGPU
    return can_be_cut and at - card.looked_at >= LOOK_SECONDS


def update_utilization(source: Source, card: Card) -> None:
    """Ask once for what all vGPUs of a card did since the last time."""
    found = {uid: part for uid, part in card.parts.items() if isinstance(part, Vgpu)}
    if found and card.handle is not None:
        card.vgpu_time_us = read_utilization(source, card.handle, found, card.vgpu_time_us)


def _tell(say: Say, card: Card, before: dict[str, Partition], found: dict[str, Partition], *, switched: bool) -> None:
    came = [part.info for uid, part in found.items() if uid not in before]
    went = [part.info for uid, part in before.items() if uid not in found]
    name = f"{card.info.model} {card.info.bdf}"
    parts = [f"MIG was turned {'on' if card.mig else 'off'}"] if switched else []
    parts += [f"{verb} {', '.join(map(_named, infos))}" for verb, infos in (("went:", went), ("came:", came)) if infos]
    details = {"came": " ".join(info.uid for info in came), "went": " ".join(info.uid for info in went)}
    say("reconfigured", f"{name} was cut anew; {'; '.join(parts)}", "info", uid=card.info.uid, details=details)


def _named(info: v1.DeviceInfo) -> str:
    return f"{info.partition.profile} {info.uid.partition(':')[2]}".strip()
