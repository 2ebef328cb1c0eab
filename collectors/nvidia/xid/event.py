"""Writes the DeviceEvents that stand for grouped lines: an id that the same lines give again, and only text that is safe to show."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from schemas.identity import NodeRef, device_uid
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collectors.nvidia.xid.group import Ended, Group, Key, Named

TEXT_CHARS: Final = 512
_NAME_CHARS: Final = 64
# Controls, characters that turn or hide text on a screen, and halves of surrogate pairs, which protobuf refuses
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the lines come from."""

    node: NodeRef
    source: str
    boot_id: str


def safe(text: str, most: int = TEXT_CHARS) -> str:
    """The text on one line, with escapes for what cannot be shown, cut to `most` characters."""
    text = _UNSAFE.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", text[: 2 * most])
    return text if len(text) <= most else text[: most - 1] + "…"


def event_id(origin: Origin, key: Key, place: int) -> str:
    """16 hex digits: the first line of an event has one place in one boot, so that who reads it again gives the same id."""
    parts = (*origin.node, origin.source, origin.boot_id, *map(str, key), str(place))
    return hashlib.blake2b("\0".join(parts).encode(errors="backslashreplace"), digest_size=8).hexdigest()


def group_event(origin: Origin, group: Group, card: Named | None) -> v1.DeviceEvent:
    """The event as it stands now. `card` None: no line has named it, and the agent finds it by `bdf`."""
    kind, bdf, code, _ = group.key
    verdict = group.verdict
    event = v1.DeviceEvent(
        cluster=origin.node.cluster,
        node=origin.node.node,
        source=origin.source,
        boot_id=origin.boot_id,
        uid=_uid(origin, kind, bdf, card),
        bdf=bdf,
        kind=f"DEVICE_EVENT_KIND_{kind.upper()}",
        severity=f"SEVERITY_{group.severity.upper()}",
        event_class=f"EVENT_CLASS_{('follows_another' if group.caused_by else verdict.event_class).upper()}",
        action=f"RECOMMENDED_ACTION_{group.action.upper()}",
        mnemonic=verdict.mnemonic,
        text=safe(f"{verdict.says} ({group.text})" if group.text and group.text not in verdict.says else verdict.says),
        count=min(group.count, 2**32 - 1),
        id=group.id,
        caused_by=group.caused_by,
        at_ns=group.first_at_ns,
        first_at_ns=group.first_at_ns,
        last_at_ns=group.last_at_ns,
        process_name=safe(group.process, _NAME_CHARS),
        details={name: safe(value, _NAME_CHARS) for name, value in verdict.details.items()},
    )
    if code >= 0:
        event.code = code
    if group.pid is not None:
        event.process_id = group.pid
    if group.gpu_instance is not None:
        event.gpu_instance_id = group.gpu_instance
    if group.compute_instance is not None:
        event.compute_instance_id = group.compute_instance
    event.details["clears"] = verdict.clears
    if verdict.quiet_hours is not None:
        event.details["quiet_seconds"] = f"{verdict.quiet_hours * 3600:.0f}"
    if card is not None and card.serial:
        event.details["board_serial"] = card.serial
    if len(group.pids) > 1:
        event.details["process_ids"] = ",".join(map(str, group.pids))
    if group.raised_by:
        event.details["action_raised_by"] = group.raised_by
        # what a stronger action needs does not end by waiting
        if group.action != verdict.action and group.severity == "critical":
            event.details["clears"] = "device_reset"
            event.details.pop("quiet_seconds", None)
    return event


def ended_event(origin: Origin, ended: Ended, card: Named | None) -> v1.DeviceEvent:
    """Says that what was said of the device, or of all of them, holds no more."""
    event = v1.DeviceEvent(
        cluster=origin.node.cluster,
        node=origin.node.node,
        source=origin.source,
        boot_id=origin.boot_id,
        uid=_uid(origin, "xid", ended.bdf, card),
        bdf=ended.bdf,
        kind=f"DEVICE_EVENT_KIND_{ended.kind.upper()}",
        severity="SEVERITY_INFO",
        event_class="EVENT_CLASS_INFORMATIONAL",
        action="RECOMMENDED_ACTION_NONE",
        text=safe(ended.text),
        count=1,
        id=event_id(origin, (ended.kind, ended.bdf, -1, ""), ended.place),
        at_ns=ended.at_ns,
        first_at_ns=ended.at_ns,
        last_at_ns=ended.at_ns,
    )
    if ended.code is not None:
        event.code = ended.code
    return event


def _uid(origin: Origin, kind: str, bdf: str, card: Named | None) -> str:
    if card is not None:
        return device_uid("nvidia", unique=card.uuid)
    if kind == "sxid":
        return device_uid("nvidia", node=origin.node.node, bdf=bdf)  # a switch has no uuid in the log, and nobody else names it
    return ""
