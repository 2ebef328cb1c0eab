"""NVLink, link by link: what is asked once a minute, and what is made of it for the card as a whole."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, Final

from collectors.nvidia.calls import number
from collectors.nvidia.fields import Field, FieldBatch
from collectors.nvidia.readings import reading
from collectors.nvidia.reply import FAILED, NOT_SUPPORTED, Failed, Replies, Reply, text, total, unsupported
from collectors.nvidia.source import Handle, Source
from schemas.builder import SampleBuilder
from schemas.identity import normal_bdf
from schemas.telemetry import v1

_COUNT_FIELD: Final = 91
_MOST_LINKS: Final = 36
_FIELDS: Final = {
    "tx_kibibytes": 138,
    "rx_kibibytes": 139,
    "speed_megabytes": 164,
    "replay": 161,
    "recovery": 162,
    "crc": 163,
    # NVLink 5
    "tx_bytes": 202,
    "rx_bytes": 204,
    "malformed": 206,
    "overrun": 207,
    "receive": 208,
    "failed_recoveries": 214,
    "recoveries": 215,
    "effective": 219,
    "symbol": 221,
}
_CALL_COUNTERS: Final = {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3}
"""nvmlNvLinkErrorCounter_t."""
_ALL_ONES_32: Final = 0xFFFFFFFF
_ALL_ONES_64: Final = 0xFFFFFFFFFFFFFFFF
"""NVML_VALUE_NOT_AVAILABLE."""
_SWITCH: Final = 2
_GPU: Final = 0
"""nvmlIntNvLinkDeviceType_t."""


@dataclass(slots=True)
class Links:
    """The links of one card in one session: what does not change is asked once, and again for a link whose state changed."""

    source: Source
    handle: Handle
    count: Reply | None = None
    fields: FieldBatch | None = None
    known: dict[int, dict[str, Any]] = field(default_factory=dict)

    def read(self) -> tuple[Reply, list[Replies]]:
        """How many links there are, or why that is not known, and the replies of each."""
        if self.count is None:
            found: Replies = {}
            FieldBatch(self.source, self.handle, {"count": _COUNT_FIELD}).ask(found)
            self.count = found["count"]
        if not isinstance(self.count, int) or not 0 < self.count <= _MOST_LINKS:
            reply = self.count if isinstance(self.count, Failed) else FAILED[NOT_SUPPORTED]
            self.count = self.count if isinstance(self.count, int) or unsupported(self.count) else None
            return reply, []
        if self.fields is None:
            wanted: dict[str, Field] = {}
            for link in range(self.count):
                wanted |= {f"{name} {link}": (number, link) for name, number in _FIELDS.items()}
            self.fields = FieldBatch(self.source, self.handle, wanted)
        values: Replies = {}
        self.fields.ask(values)
        links = [self._link(link, values) for link in range(self.count)]
        self._narrow(values)
        return self.count, links

    def _link(self, link: int, values: Replies) -> Replies:
        n, ask = self.source.nvml, self.source.ask
        replies: Replies = {name: values.get(f"{name} {link}", FAILED[NOT_SUPPORTED]) for name in _FIELDS}
        state = ask(n.nvmlDeviceGetNvLinkState, self.handle, link)
        replies["state"] = state
        if unsupported(replies["replay"]) and unsupported(replies["recoveries"]) and not unsupported(state):
            for name, counter in _CALL_COUNTERS.items():
                asked: Replies = {}
                symbol = "nvmlDeviceGetNvLinkErrorCounter"
                number(self.source, name, symbol, self.handle, link, counter, room=ctypes.c_ulonglong).run(asked)
                replies[name] = asked[name]
        known = self.known.get(link)
        if known is None or known["state"] != state:
            known = self.known[link] = {"state": state} | self._constants(link, up=state == 1)
        return replies | {name: value for name, value in known.items() if name != "state"}

    def _constants(self, link: int, *, up: bool) -> Replies:
        n, ask = self.source.nvml, self.source.ask
        found: Replies = {"version": ask(n.nvmlDeviceGetNvLinkVersion, self.handle, link)}
        if up:
            found["remote_type"] = ask(n.nvmlDeviceGetNvLinkRemoteDeviceType, self.handle, link)
            remote = ask(n.nvmlDeviceGetNvLinkRemotePciInfo, self.handle, link)
            found["remote_bdf"] = remote if isinstance(remote, Failed) else text(remote.busId)
        return found

    def _narrow(self, values: Replies) -> None:
        """Fields that no link of this card has are not asked again in this session."""
        assert self.fields is not None
        has = {name.partition(" ")[0] for name, value in values.items() if not unsupported(value)}
        names = [name for name in self.fields.names if name.partition(" ")[0] in has]
        if len(names) < len(self.fields.names):
            wanted: dict[str, Field] = {name: (_FIELDS[kind], int(link)) for name in names for kind, _, link in (name.partition(" "),)}
            self.fields = FieldBatch(self.source, self.handle, wanted)


def link_fields(builder: SampleBuilder, count: Reply, links: list[Replies]) -> list[v1.InterconnectLink]:
    """Set the sums over all links; a sum that lacks a link's share is none. Gives each link by itself, with what is known of it."""
    if not isinstance(count, int):
        for name in ("interconnect_links_active", "interconnect_errors", *_SUMS):
            builder.set(name, reading(count, 1))
        return []
    states = [link["state"] for link in links]
    broken = next((state for state in states if isinstance(state, Failed) and not unsupported(state)), None)
    if all(unsupported(state) for state in states):
        builder.absent("interconnect_links_active", "not_supported")
    else:
        builder.set("interconnect_links_active", reading(broken, 1) if broken is not None else sum(state == 1 for state in states))
    by_kind = {name: [_sum(link, sources) for link in links] for name, sources in _SUMS.items()}
    for name, counters in by_kind.items():
        builder.set(name, reading(total(counters), 1))
    builder.set("interconnect_errors", reading(total(c for counters in by_kind.values() for c in counters), 1))
    return [_message(index, link) for index, link in enumerate(links)]


_SUMS: Final = {
    "interconnect_replay_errors": ("replay",),
    "interconnect_recovery_errors": ("recovery", "recoveries"),
    "interconnect_crc_errors": ("crc", "crc_flit", "crc_data"),
}


def _sum(link: Replies, names: tuple[str, ...]) -> Reply:
    """Of the sources of a counter: DL counters of NVLink 4 and older, or NVLink 5's."""
    return total(link.get(name) for name in names)


def _message(index: int, link: Replies) -> v1.InterconnectLink:
    made = v1.InterconnectLink(index=index)
    state = link["state"]
    if isinstance(state, int):
        made.active = state == 1
    numbers = {
        "replay_errors": _sum(link, ("replay",)),
        "recovery_errors": _sum(link, ("recovery", "recoveries")),
        "crc_errors": _sum(link, ("crc", "crc_flit", "crc_data")),
        "receive_errors": _sum(link, ("receive", "malformed", "overrun")),
        "effective_errors": link.get("effective"),
        "symbol_errors": link.get("symbol"),
        "failed_recoveries": link.get("failed_recoveries"),
        "version": link.get("version"),
    }
    for direction in ("tx", "rx"):
        in_bytes, in_kibibytes = link.get(f"{direction}_bytes"), link.get(f"{direction}_kibibytes")
        numbers[f"{direction}_bytes"] = in_bytes if not unsupported(in_bytes) else _times(in_kibibytes, 1024)
    for name, value in numbers.items():
        if isinstance(value, int) and 0 <= value < (_ALL_ONES_32 if name == "version" else _ALL_ONES_64):
            setattr(made, name, value)
    speed = link.get("speed_megabytes")
    if isinstance(speed, int) and 0 < speed < _ALL_ONES_32:
        made.speed_bytes_per_second = speed * 1e6
    kind = link.get("remote_type")
    if kind in (_GPU, _SWITCH):
        made.remote_kind = v1.DeviceKind.DEVICE_KIND_ACCELERATOR if kind == _GPU else v1.DeviceKind.DEVICE_KIND_SWITCH
    bdf = link.get("remote_bdf")
    if isinstance(bdf, str):
        made.remote_bdf = _bdf(bdf)
    return made


def _times(reply: Reply | None, factor: int) -> Reply | None:
    return reply * factor if isinstance(reply, int) else reply


def _bdf(said: str) -> str:
    """An address as the rest of the system writes it; empty where it is none (a switch of NVLink 5 has only zeros)."""
    try:
        bdf = normal_bdf(said)
    except ValueError:
        return ""
    return "" if bdf == "0000:00:00.0" else bdf
