"""Which device each line of a DCGM page is about: pod labels copy a device, MIG lines repeat their parent, and both are counted once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collectors.dcgm import blank
from collectors.dcgm.settings import NAME
from schemas.dcgm import DRIVER_LABELS, HOST_LABELS, MODEL_LABELS, UUID_LABELS, XID, DcgmField, table
from schemas.exposition import Exposition, Scraped
from schemas.identity import normal_bdf

_PODS: Final = ("pod", "exported_pod", "pod_name", "container", "exported_container", "container_name")
_OTHER_ENTITIES: Final = ("nvlink", "nvswitch", "cpu", "cpucore")
_SERIALS: Final = ("DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_GPU_SERIAL")
_FIRMWARES: Final = ("DCGM_FI_DEV_VBIOS_VERSION", "DCGM_FI_DEV_GPU_VBIOS_VERSION")
_XID_COUNT: Final = "DCGM_EXP_XID_ERRORS_COUNT"
_XID_TOTAL: Final = "DCGM_EXP_XID_ERRORS_TOTAL"
_IDENTITY: Final = re.compile(r"[A-Za-z0-9._:-]{1,96}")
_NO_INSTANCE: Final = 0xFFFFFFFF
"""GPU_I_ID of a GPU without MIG where an exporter prints one."""

MOST_DEVICES: Final = 4096
"""Of one page; a federated one may have a whole cluster's."""


class Key(NamedTuple):
    """A GPU, or its MIG instance number `instance`. `host` is what the page says of it; empty where it says nothing."""

    host: str
    uuid: str
    bdf: str
    instance: int | None


@dataclass(slots=True)
class Xids:
    """What the page says of a GPU's Xids: the last one (0: none yet), how often each came in the last window, and since its start."""

    last: int | None = None
    windowed: dict[int, int] | None = None
    total: dict[int, int] | None = None


@dataclass(slots=True)
class Seen:
    """A device as its lines show it. `values` has DCGM's own numbers by the field's name; where two lines that cannot be told apart
    contradict each other the field is in `contradictory`."""

    key: Key
    index: int = 0
    bdf: str = ""
    model: str = ""
    profile: str = ""
    driver: str = ""
    serial: str = ""
    firmware: str = ""
    values: dict[str, float] = field(default_factory=dict)
    contradictory: set[str] = field(default_factory=set)
    xids: Xids = field(default_factory=Xids)
    _shared: set[str] = field(default_factory=set)

    def take(self, name: str, value: float, *, of_pod: bool) -> bool:
        """Remember a line's value; False where it was there already. A line that names no pod is the device's own and wins."""
        old = self.values.get(name)
        if old is None:
            self.values[name] = value
            if of_pod:
                self._shared.add(name)
            return True
        if not of_pod and name in self._shared:
            self.values[name] = value
            self._shared.discard(name)
            self.contradictory.discard(name)
        elif old != value and of_pod == (name in self._shared):
            self.contradictory.add(name)
        return False


@dataclass(slots=True)
class Page:
    """Devices in the page's order. `left_out` counts lines that are not in them, by reason; `newest_ns` is the lines' latest own time."""

    devices: dict[Key, Seen] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    newest_ns: int | None = None


class _Place(NamedTuple):
    seen: Seen
    parent: Seen
    of_pod: bool


def sort(exposition: Exposition) -> Page:
    """The page's DCGM lines by device; others (go_..., process_...) are nobody's. A MIG line also makes its GPU."""
    page = Page()
    known = table().by_name
    places: dict[int, _Place | str] = {}
    for scraped in exposition.samples:
        if not scraped.name.startswith(("DCGM_", "dcgm_")):
            continue
        row = known.get(scraped.name)
        if row is None and scraped.name not in (_XID_COUNT, _XID_TOTAL):
            page.left_out["unknown_field"] += 1
            continue
        # Lines share their labels' dictionary, which the exposition keeps alive: its id names the place.
        place = places.get(id(scraped.labels))
        if place is None:
            place = places[id(scraped.labels)] = _place(page, scraped.labels)
        if isinstance(place, str):
            page.left_out[place] += 1
            continue
        if scraped.timestamp_ns is not None:
            page.newest_ns = max(scraped.timestamp_ns, page.newest_ns or 0)
        _take(page, place, row, scraped)
    return page


def _take(page: Page, place: _Place, row: DcgmField | None, scraped: Scraped) -> None:
    if row is None:
        _count_xid(place.parent.xids, scraped)
    elif row.name == XID:
        number = _whole(scraped.value)
        if number is not None:
            place.parent.xids.last = max(number, place.parent.xids.last or 0)
    elif not place.seen.take(row.name, scraped.value, of_pod=place.of_pod):
        page.left_out["repeated"] += 1


def _count_xid(xids: Xids, scraped: Scraped) -> None:
    counts = xids.windowed if scraped.name == _XID_COUNT else xids.total
    if counts is None:
        counts = {}
        if scraped.name == _XID_COUNT:
            xids.windowed = counts
        else:
            xids.total = counts
    code, count = scraped.labels.get("xid", ""), _whole(scraped.value)
    if count is not None and code.isascii() and code.isdigit() and len(code) < 8 and len(counts) < 256 and int(code):
        counts[int(code)] = max(count, counts.get(int(code), 0))


def _whole(value: float) -> int | None:
    """A count or a number of an Xid; None for blanks and nonsense."""
    found = blank.reading(value)
    return int(found) if isinstance(found, int | float) and 0 <= found < 1e9 else None


def _place(page: Page, labels: Mapping[str, str]) -> _Place | str:
    if any(labels.get(name) for name in _OTHER_ENTITIES):
        return "not_a_gpu"
    uuid, host = _first(labels, UUID_LABELS), _first(labels, HOST_LABELS)
    try:
        bdf = normal_bdf(labels.get("pci_bus_id", ""))
    except ValueError:
        bdf = ""
    if not (uuid or bdf) or (uuid and not _IDENTITY.fullmatch(uuid)):
        return "no_identity"
    if host and not NAME.fullmatch(host):
        return "bad_host_name"
    instance = _instance(labels.get("GPU_I_ID", ""))
    if len(page.devices) >= MOST_DEVICES:
        return "too_many_devices"
    parent = _device(page, Key(host, uuid, "" if uuid else bdf, None), labels, bdf)
    seen = parent if instance is None else _device(page, Key(host, uuid, "" if uuid else bdf, instance), labels, bdf)
    if instance is not None:
        seen.profile = seen.profile or blank.text(labels.get("GPU_I_PROFILE", ""))
    return _Place(seen, parent, any(labels.get(name) for name in _PODS))


def _device(page: Page, key: Key, labels: Mapping[str, str], bdf: str) -> Seen:
    seen = page.devices.get(key)
    if seen is None:
        number = labels.get("gpu", "")
        seen = page.devices[key] = Seen(key, int(number) if number.isascii() and number.isdigit() and len(number) < 5 else 0)
    seen.model = seen.model or _first(labels, MODEL_LABELS)
    seen.driver = seen.driver or _first(labels, DRIVER_LABELS)
    seen.serial = seen.serial or _first(labels, _SERIALS)
    seen.firmware = seen.firmware or _first(labels, _FIRMWARES)
    seen.bdf = seen.bdf or bdf
    return seen


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((found for name in names if (found := blank.text(labels.get(name, "")))), "")


def _instance(value: str) -> int | None:
    if not value.isascii() or not value.isdigit() or len(value) > 10:
        return None
    number = int(value)
    return None if number >= _NO_INSTANCE else number
