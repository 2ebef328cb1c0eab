"""Makes the DeviceEvents of this folder: of one card, or of an address that no card answers at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from collectors.events import Severity, content_id
from schemas.identity import NodeRef
from schemas.telemetry import v1

SOURCE: Final = "nvidia"
Kind = Literal["xid", "vendor_log", "lost", "missing", "added", "reconfigured"]


@dataclass(frozen=True, slots=True)
class Watched:
    """A card as the plugin knows it. `handle` None where the driver gives none: the card is lost."""

    uid: str
    bdf: str
    model: str
    handle: Any

    @property
    def label(self) -> str:
        return f"{self.model} {self.bdf}"


@dataclass(frozen=True, slots=True)
class Where:
    """Whose event it is."""

    node: NodeRef
    boot_id: str


def event(
    where: Where,
    kind: Kind,
    at_ns: int,
    text: str,
    severity: Severity,
    *,
    uid: str = "",
    bdf: str = "",
    code: int | None = None,
    action: str = "",
    event_class: str = "",
    details: Mapping[str, str] | None = None,
) -> v1.DeviceEvent:
    """One event seen once at `at_ns` (ns UTC); `action` and `event_class` are lower-case names of their enums."""
    made = v1.DeviceEvent(
        cluster=where.node.cluster,
        node=where.node.node,
        boot_id=where.boot_id,
        source=SOURCE,
        uid=uid,
        bdf=bdf,
        kind=f"DEVICE_EVENT_KIND_{kind.upper()}",
        severity=f"SEVERITY_{severity.upper()}",
        action=f"RECOMMENDED_ACTION_{(action or 'unspecified').upper()}",
        event_class=f"EVENT_CLASS_{(event_class or 'unspecified').upper()}",
        text=text,
        count=1,
        at_ns=at_ns,
        first_at_ns=at_ns,
        last_at_ns=at_ns,
        details=details or {},
    )
    if code is not None:
        made.code = code
    made.id = content_id(made)
    return made
