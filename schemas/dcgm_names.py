"""Writes a fleet's state as dcgm-exporter would (names, units, types, labels, number formats), so that what was built on that works on.

Labels are dcgm-exporter's too, the volatile err_code among them; escaped, which there they are not. Where that exporter repeats the
board's readings (power, energy, temperature) for each MIG instance, the board has them here once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from schemas.catalogue import BY_NAME
from schemas.dcgm import DRIVER_LABELS, NVLINK_RATE, XID, DcgmField, exported, table
from schemas.device_state import DeviceState, FleetState
from schemas.identity import NodeRef, vendor_of
from schemas.merged import one_per_device
from schemas.openmetrics_text import escaped, short
from schemas.values import Value

HostLabel = Literal["Hostname", "hostname"]

XID_COUNT: Final = "DCGM_EXP_XID_ERRORS_COUNT"
XID_WINDOW_NS: Final = 5 * 60 * 1_000_000_000
"""dcgm-exporter's default window of that count."""

_RATES: Final = {
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_tx_bytes",),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_rx_bytes",),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("interconnect_tx_bytes",),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": ("interconnect_rx_bytes",),
    NVLINK_RATE: ("interconnect_tx_bytes", "interconnect_rx_bytes"),
}
"""Gauges of DCGM that are the growth per second of our counters, where no source gave the rate itself."""

RATED: Final = frozenset(name for names in _RATES.values() for name in names)
"""The counters whose growth is wanted."""


@dataclass(frozen=True, slots=True)
class Trail:
    """What DCGM tells of a device and its latest state does not: its past. `rates` are per second, by the counter's catalogue name."""

    last_xid: int = 0
    last_xid_text: str = ""
    last_xid_at_ns: int = 0
    xids: Mapping[int, int] = field(default_factory=dict)
    """How often each Xid came within XID_WINDOW_NS."""
    rates: Mapping[str, float] = field(default_factory=dict)


NONE: Final = Trail()
Trails = Mapping[tuple[NodeRef, str], Trail]
"""By node and uid."""


class _Row(NamedTuple):
    device: DeviceState
    labels: str
    """Without the closing brace."""
    whole: bool
    """A whole GPU, no MIG instance."""
    trail: Trail


def encode(fleet: FleetState, trails: Trails, host_label: HostLabel = "Hostname") -> str:
    """Prometheus text 0.0.4 of NVIDIA's devices; others have no DCGM names."""
    rows = list(_rows(fleet, trails, host_label))
    found: dict[str, list[str]] = {}
    for row in rows:
        printed = {dcgm.name: _number(dcgm, value) for dcgm, value in exported(row.device.values)}
        printed |= {name: text for name in _RATES if name not in printed and (text := _rate(name, row))}
        for name, text in printed.items():
            found.setdefault(name, []).append(f"{name}{row.labels}}} {text}\n")
        if row.whole:
            xid = row.trail.last_xid
            text = row.trail.last_xid_text or "Unknown Error" if xid else "No Error"
            line = f'{XID}{row.labels},err_code="{xid}",err_msg="{escaped(text)}"}} {xid}\n'
            found.setdefault(XID, []).append(line)
    said = [dcgm for dcgm in sorted(table().rows, key=lambda dcgm: dcgm.number) if dcgm.name in found]
    out = [f"{_head(dcgm.name, dcgm.help, dcgm.family)}{''.join(found[dcgm.name])}" for dcgm in said]
    counts = [
        f'{XID_COUNT}{row.labels},window_size_in_ms="{XID_WINDOW_NS // 1_000_000}",xid="{xid}"}} {count}\n'
        for row in rows
        if row.whole
        for xid, count in sorted(row.trail.xids.items())
    ]
    if counts:
        out += [_head(XID_COUNT, "How often each Xid came within the window.", "gauge"), *counts]
    return "".join(out)


def _head(name: str, said: str, family: str) -> str:
    return f"# HELP {name} {said}\n# TYPE {name} {family}\n"


def _rows(fleet: FleetState, trails: Trails, host_label: HostLabel) -> Iterable[_Row]:
    devices = [d for d in one_per_device(fleet.devices) if (d.info.vendor or vendor_of(d.uid)) == "nvidia"]
    boards = {(d.node, d.uid): d for d in devices if not d.partition}
    parts: dict[tuple[NodeRef, str], list[DeviceState]] = {}
    for device in devices:
        if device.partition and device.info.partition.HasField("gpu_instance_id"):
            parts.setdefault((device.node, device.info.parent_uid), []).append(device)
    for key, board in boards.items():
        mine = sorted(parts.get(key, ()), key=lambda d: (d.info.partition.gpu_instance_id, d.info.partition.compute_instance_id))
        trail = _joined([trails.get((d.node, d.uid), NONE) for d in (board, *mine)])
        yield _Row(board, _labels(board, None, host_label), True, trail)
        seen: set[int] = set()
        for part in mine:
            instance = part.info.partition.gpu_instance_id
            if instance not in seen:  # dcgm-exporter knows no compute instances: the first one's line stands for them
                seen.add(instance)
                yield _Row(part, _labels(board, part, host_label), False, trails.get((part.node, part.uid), NONE))


def _joined(trails: list[Trail]) -> Trail:
    """A board's Xids, those of its MIG instances among them."""
    last = max(trails, key=lambda trail: trail.last_xid_at_ns)
    xids: dict[int, int] = {}
    for trail in trails:
        for xid, count in trail.xids.items():
            xids[xid] = xids.get(xid, 0) + count
    return Trail(last.last_xid, last.last_xid_text, last.last_xid_at_ns, xids, trails[0].rates)


def _labels(board: DeviceState, part: DeviceState | None, host_label: HostLabel) -> str:
    info = board.info
    unique = board.uid.partition(":")[2]
    text = (
        f'{{gpu="{board.index}",UUID="{escaped(unique) if unique.startswith("GPU-") else ""}",pci_bus_id="{_bus_id(info.bdf)}"'
        f',device="nvidia{board.index}",modelName="{escaped(info.model)}"'
    )
    if part is not None:
        shape = part.info.partition
        text += f',GPU_I_PROFILE="{escaped(shape.profile)}",GPU_I_ID="{shape.gpu_instance_id}"'
    text += f',{host_label}="{escaped(board.node.node)}"'
    return text + (f',{DRIVER_LABELS[0]}="{escaped(info.driver_version)}"' if info.driver_version else "")


def _bus_id(bdf: str) -> str:
    """NVML's way to write a PCI address: eight digits of domain, capitals."""
    domain, colon, rest = bdf.partition(":")
    return f"{domain:0>8}:{rest}".upper() if colon else ""


def _rate(name: str, row: _Row) -> str:
    dcgm = table().by_name[name]
    given = row.device.vendor_metrics.get(dcgm.vendor) if dcgm.vendor else None
    if given is None:
        parts = [row.trail.rates.get(counter) for counter in _RATES[name]]
        known = [part for part in parts if part is not None]
        if len(known) != len(parts):
            return ""
        given = sum(known)
    return _number(dcgm, dcgm.printed(given))


def _number(dcgm: DcgmField, value: Value) -> str:
    """Go's %d and %f; a 32-bit float is first what was meant by it: 123.215 W, not 123.214996."""
    if dcgm.whole:
        return str(int(value))
    return f"{float(short(value)) if dcgm.metric and BY_NAME[dcgm.metric].wire == 'float' else value:f}"
