"""Makes the rows of an AttributedBatch: first what the devices said, then, once it is known, whose it was.

A device that several workloads share is split by their promised shares. Only flows are split (power, energy, busy time): they
add up, and the parts again give the device's reading. Memory is a stock: what a workload holds has nothing to do with what it was
promised, so its row says nothing of memory until a source that sees processes does. Board energy is split whole: also the part
that an idle card draws is paid by those who hold it.

Rows are made as bytes. Two serialised parts of a message, one behind the other, are the serialised whole, so what a device said is
written once and its holder's part, which seldom changes, is put behind it: messages for rows take half as long again (measured).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.operators.attribute.history import History, Holding

_IDLE_ROW: Final = v1.Attributed(owner_state=v1.OwnerState.OWNER_STATE_IDLE, share_ratio=1.0).SerializeToString()
_UNKNOWN_ROW: Final = v1.Attributed(owner_state=v1.OwnerState.OWNER_STATE_UNKNOWN, share_ratio=1.0).SerializeToString()
_MOST_TEXTS: Final = 200_000

Meter = tuple[tuple[str, int], int, float]
"""Last reading of a device's energy counter: its epoch (boot of the node, load of the driver), when (ns), and the joules.

A plain tuple: a NamedTuple costs eight times as much to make, and one is made for every device sample.
"""


class Ownerless(NamedTuple):
    """Rows without owner: `head` is the serialised rest of the AttributedBatch, `rows` the serialised row of each of `uids`.

    Bytes, not messages: many wait.
    """

    taken_at_ns: int
    head: bytes
    uids: tuple[str, ...]
    rows: tuple[bytes, ...]


def ownerless(batch: v1.SampleBatch, meters: dict[str, Meter]) -> Ownerless:
    """One row per device, without owner; `meters` (by uid) is read for the energy used since, and brought up to date.

    Energy is absent without an earlier reading in the same counter epoch, where the counter fell within one, and for a batch
    that is older than the last one.
    """
    taken_at_ns, epoch = batch.taken_at_ns, (batch.boot_id, batch.driver_epoch)
    head = v1.AttributedBatch(
        cluster=batch.cluster,
        node=batch.node,
        source=batch.source,
        agent_epoch=batch.agent_epoch,
        sequence=batch.sequence,
        taken_at_ns=taken_at_ns,
        interval_ns=batch.interval_ns,
        simulated=batch.simulated,
    )
    uids: list[str] = []
    rows: list[bytes] = []
    for device in batch.devices:
        uid = device.uid
        row = _uid(uid)
        # A value other than 0 is set; asking HasField only for zeros saves a third of the time.
        if (utilization := device.utilization_ratio) or device.HasField("utilization_ratio"):
            row += _FLOAT(_UTILIZATION_TAG, utilization)
        if (memory := device.memory_used_bytes) or device.HasField("memory_used_bytes"):
            row += _memory(memory)
        if (power := device.power_watts) or device.HasField("power_watts"):
            row += _FLOAT(_POWER_TAG, power)
        if (joules := device.energy_joules) or device.HasField("energy_joules"):
            last = meters.get(uid)
            if last is None or taken_at_ns > last[1]:
                meters[uid] = (epoch, taken_at_ns, joules)
                if last is not None and last[0] == epoch and joules >= last[2]:
                    row += _DOUBLE(_ENERGY_TAG, joules - last[2])
        uids.append(uid)
        rows.append(row)
    return Ownerless(taken_at_ns, head.SerializeToString(), tuple(uids), tuple(rows))


def own(batch: Ownerless, history: History | None) -> bytes:
    """The serialised AttributedBatch with owners as of the batch's time; without a history (no word in time) every owner is unknown."""
    at_ns = batch.taken_at_ns
    parts = [batch.head]
    for uid, row in zip(batch.uids, batch.rows, strict=True):
        holders = None if history is None else history.holders(uid, at_ns)
        if holders is None:
            owner = _UNKNOWN_ROW
        elif not holders:
            owner = _IDLE_ROW
        elif len(holders) == 1:
            owner = holders[0].row
        else:
            for part in _split(row, holders):
                parts += (_row(len(part)), part)
            continue
        parts += (_row(len(row) + len(owner)), row, owner)
    return b"".join(parts)


def _split(serialised: bytes, holders: list[Holding]) -> Iterator[bytes]:
    """A shared device's rows, one per holder in order."""
    row = v1.Attributed.FromString(serialised)
    whole = sum(h.weight for h in holders)
    for holding in holders:
        share = holding.weight / whole
        part = v1.Attributed(uid=row.uid)
        part.MergeFromString(holding.row)
        part.owner_state = v1.OwnerState.OWNER_STATE_SHARED
        part.share_ratio = share
        if row.HasField("utilization_ratio"):
            part.utilization_ratio = row.utilization_ratio * share
        if row.HasField("power_watts"):
            part.power_watts = row.power_watts * share
        if row.HasField("energy_joules"):
            part.energy_joules = row.energy_joules * share
        yield part.SerializeToString()


def _tag(message: type[v1.Attributed | v1.AttributedBatch], name: str, wire: int) -> int:
    tag = message.DESCRIPTOR.fields_by_name[name].number << 3 | wire
    assert tag < 128, f"{name}: a tag of one byte is written"
    return tag


_UTILIZATION_TAG: Final = _tag(v1.Attributed, "utilization_ratio", 5)
_POWER_TAG: Final = _tag(v1.Attributed, "power_watts", 5)
_ENERGY_TAG: Final = _tag(v1.Attributed, "energy_joules", 1)
_MEMORY_TAG: Final = _tag(v1.Attributed, "memory_used_bytes", 0)
_UID_TAG: Final = _tag(v1.Attributed, "uid", 2)
_ROW_TAG: Final = _tag(v1.AttributedBatch, "rows", 2)
_FLOAT: Final = struct.Struct("<Bf").pack
_DOUBLE: Final = struct.Struct("<Bd").pack


def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


@lru_cache(_MOST_TEXTS)
def _uid(uid: str) -> bytes:
    raw = uid.encode()
    return bytes((_UID_TAG,)) + _varint(len(raw)) + raw


@lru_cache(1 << 16)  # what services hold is mostly what they held a second ago
def _memory(number: int) -> bytes:
    return bytes((_MEMORY_TAG,)) + _varint(number)


@lru_cache(1 << 12)
def _row(length: int) -> bytes:
    return bytes((_ROW_TAG,)) + _varint(length)
