"""Lines of a kernel log at given seconds, and what the reading and grouping make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from collectors.nvidia.xid.event import Origin
from collectors.nvidia.xid.group import Groups, Item, Windows, step
from collectors.nvidia.xid.translate import Reader
from collectors.nvidia.xid.verdict import Override, overridden
from schemas.flow import Tick
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.xid import catalogue

START_NS = 1_790_000_000_000_000_000
ORIGIN = Origin(NodeRef("c1", "n1"), "kernel", "boot-1")


def at(seconds: float) -> int:
    return START_NS + round(seconds * 1e9)


def items(*lines: tuple[float, str] | float, reader: Reader | None = None) -> list[Item]:
    """A pair is a line at a second, a number alone is a Tick."""
    reader = reader or Reader()
    made: list[Item | None] = [
        Tick(at(line)) if isinstance(line, int | float) else reader.read(at(line[0]), round(line[0] * 1e6), line[1]) for line in lines
    ]
    return [item for item in made if item is not None]


def grouped(
    *lines: tuple[float, str] | float, driver_branch: int | None = None, overrides: Mapping[int, Override] | None = None
) -> list[v1.DeviceEvent]:
    """All versions of all events."""
    reader = Reader(overridden(catalogue(), overrides or {}), driver_branch=driver_branch)
    return step(Groups(ORIGIN, Windows()), items(*lines, reader=reader))[1]


def newest(events: Iterable[v1.DeviceEvent]) -> list[v1.DeviceEvent]:
    """The last version of each event, in the order of their first."""
    return list({event.id: event for event in events}.values())


def xid(code: int, text: str = "", *, bdf: str = "0000:3b:00", gi: str = "") -> str:
    return f"NVRM: Xid (PCI:{bdf}{gi}): {code}, pid=1234, name=python, {text or 'Ch 00000008'}"


def severity(event: v1.DeviceEvent) -> str:
    return v1.Severity.Name(event.severity).removeprefix("SEVERITY_").lower()


def action(event: v1.DeviceEvent) -> str:
    return v1.RecommendedAction.Name(event.action).removeprefix("RECOMMENDED_ACTION_").lower()


def kind(event: v1.DeviceEvent) -> str:
    return v1.DeviceEventKind.Name(event.kind).removeprefix("DEVICE_EVENT_KIND_").lower()
