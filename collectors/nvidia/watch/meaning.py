"""What NVML's events mean, and many equal ones as one that counts: pure.

Bits are nvml.h's nvmlEventType*. P-state, clock and power-source changes are left out: they are readings, not news.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from collectors.events import Severity
from collectors.nvidia.watch.event import Kind, Watched, Where, event
from schemas.telemetry import v1

XID: Final = 0x8
UNKNOWN_XID: Final = 999
"""nvml.h: the data of an Xid event whose number the library could not find out."""

QUIET_NS: Final = 60 * 1_000_000_000
"""An equal event after so long a silence is a new one."""

MOST_OPEN: Final = 512
"""Kinds of events that are counted at one time; beyond, the one silent for longest is let go, and begins anew if it comes again."""


class _Meaning(NamedTuple):
    kind: Kind
    severity: Severity
    text: str
    action: str = ""


_MEANING: Final[dict[int, _Meaning]] = {
    0x1: _Meaning("vendor_log", "info", "a single-bit memory error was corrected", "none"),
    0x2: _Meaning("vendor_log", "critical", "a double-bit memory error could not be corrected", "reset_device"),
    0x100: _Meaning("reconfigured", "info", "the MIG configuration changed"),
    0x200: _Meaning("vendor_log", "warning", "single-bit memory errors come in a storm", "check_hardware"),
    0x400: _Meaning("vendor_log", "warning", "a part of the memory was retired after errors", "drain_and_reset"),
    0x800: _Meaning("vendor_log", "critical", "a faulty part of the memory could not be retired", "replace_device"),
    0x1000: _Meaning(
        "vendor_log", "warning", "poisoned data was used and contained: the process that used it ended", "restart_application"
    ),
    0x2000: _Meaning("vendor_log", "critical", "poisoned data was used and could not be contained", "reset_device"),
    0x4000: _Meaning("vendor_log", "critical", "the GPU became unavailable", "reset_device"),
    0x8000: _Meaning("vendor_log", "warning", "the driver changed what it asks for to recover the GPU: see recovery_action"),
}
WANTED: Final = XID | sum(_MEANING)
"""Types that are worth a registration, where the card supports them."""


class Happened(NamedTuple):
    """One event of the set. Instance ids are None outside MIG."""

    card: Watched | None
    type: int
    data: int
    gpu_instance: int | None
    compute_instance: int | None

    @property
    def key(self) -> _Key:
        """Equal for equal events, of another session too."""
        return "" if self.card is None else self.card.uid, *self[1:]


_Key = tuple[str, int, int, int | None, int | None]


@dataclass(slots=True)
class _Open:
    event: v1.DeviceEvent
    last_ns: int


class Counted:
    """Events that are still being counted: the same id with a larger count as long as equal ones come."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._open: dict[_Key, _Open] = {}

    def step(self, happened: Iterable[Happened], at_ns: int) -> list[v1.DeviceEvent]:
        """What one look at the event set gave, taken at `at_ns`: each different event once, in the order of their first."""
        told: dict[_Key, v1.DeviceEvent] = {}
        for one in happened:
            known = self._open.pop(one.key, None)
            if known is None or at_ns - known.last_ns > QUIET_NS:
                known = _Open(_event(self._where, one, at_ns), at_ns)
            else:
                known.event.count += 1
                known.event.last_at_ns = at_ns
                known.last_ns = at_ns
            self._open[one.key] = known  # at the end: the order is that of the last sight
            told[one.key] = known.event
        while len(self._open) > MOST_OPEN:
            del self._open[next(iter(self._open))]
        copies = []
        for made in told.values():
            copy = v1.DeviceEvent()
            copy.CopyFrom(made)
            copies.append(copy)
        return copies


def _event(where: Where, one: Happened, at_ns: int) -> v1.DeviceEvent:
    uid, bdf, label = ("", "", "a GPU that NVML does not name") if one.card is None else (one.card.uid, one.card.bdf, one.card.label)
    if one.type == XID:
        made = _xid(where, one.data, at_ns, uid, bdf)
    else:
        found = _MEANING.get(one.type, _Meaning("vendor_log", "info", f"NVML reports an event of type {one.type:#x}"))
        details = {"nvml_event": f"{one.type:#x}", **({"data": str(one.data)} if one.data else {})}
        text = f"{label}: {found.text}"
        made = event(where, found.kind, at_ns, text, found.severity, uid=uid, bdf=bdf, action=found.action, details=details)
    if one.gpu_instance is not None:
        made.gpu_instance_id = one.gpu_instance
    if one.compute_instance is not None:
        made.compute_instance_id = one.compute_instance
    return made


def _xid(where: Where, code: int, at_ns: int, uid: str, bdf: str) -> v1.DeviceEvent:
    if code == UNKNOWN_XID:
        text = "NVML reports an Xid whose number it does not know; the kernel log has it"
        return event(where, "xid", at_ns, text, "warning", uid=uid, bdf=bdf, details={"nvml_event": "0x8"})
    from schemas.xid import catalogue  # only where there is an Xid at all: the table is 170 rows of YAML

    row = catalogue().row(code)
    made = event(
        where,
        "xid",
        at_ns,
        row.says,
        row.severity,
        uid=uid,
        bdf=bdf,
        code=code,
        action=row.action,
        event_class=row.event_class,
        details={"nvml_event": "0x8", "clears": row.clears},
    )
    made.mnemonic = row.mnemonic
    return made
