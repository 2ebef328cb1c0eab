"""Makes the rows of an AttributedBatch: first what the devices said, then, once it is known, whose it was.

A device that several workloads share is split by their promised shares. Only flows are split (power, energy, busy time): they
add up, and the parts again give the device's reading. Memory is a stock: what a workload holds has nothing to do with what it was
promised, so its row says nothing of memory until a source that sees processes does. Board energy is split whole: also the part
that an idle card draws is paid by those who hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.telemetry import v1

if TYPE_CHECKING:
    from streams.operators.attribute.history import History, Holding

_IDLE_ROW = v1.Attributed(owner_state=v1.OwnerState.OWNER_STATE_IDLE, share_ratio=1.0).SerializeToString()
_UNKNOWN_ROW = v1.Attributed(owner_state=v1.OwnerState.OWNER_STATE_UNKNOWN, share_ratio=1.0).SerializeToString()


Meter = tuple[tuple[str, int], int, float]
"""Last reading of a device's energy counter: its epoch (boot of the node, load of the driver), when (ns), and the joules.

A plain tuple: a NamedTuple costs eight times as much to make, and one is made for every device sample.
"""


def ownerless(batch: v1.SampleBatch, meters: dict[str, Meter]) -> v1.AttributedBatch:
    """One row per device, without owner; `meters` (by uid) is read for the energy used since, and brought up to date.

    Energy is absent without an earlier reading in the same counter epoch, where the counter fell within one, and for a batch
    that is older than the last one.
    """
    taken_at_ns, epoch = batch.taken_at_ns, (batch.boot_id, batch.driver_epoch)
    made = v1.AttributedBatch(
        cluster=batch.cluster,
        node=batch.node,
        source=batch.source,
        agent_epoch=batch.agent_epoch,
        sequence=batch.sequence,
        taken_at_ns=taken_at_ns,
        interval_ns=batch.interval_ns,
        simulated=batch.simulated,
    )
    add = made.rows.add
    for device in batch.devices:
        row = add()
        row.uid = uid = device.uid
        # A value other than 0 is set; asking HasField only for zeros saves a third of the time.
        if (utilization := device.utilization_ratio) or device.HasField("utilization_ratio"):
            row.utilization_ratio = utilization
        if (memory := device.memory_used_bytes) or device.HasField("memory_used_bytes"):
            row.memory_used_bytes = memory
        if (power := device.power_watts) or device.HasField("power_watts"):
            row.power_watts = power
        if (joules := device.energy_joules) or device.HasField("energy_joules"):
            last = meters.get(uid)
            if last is None or taken_at_ns > last[1]:
                meters[uid] = (epoch, taken_at_ns, joules)
                if last is not None and last[0] == epoch and joules >= last[2]:
                    row.energy_joules = joules - last[2]
    return made


def own(batch: v1.AttributedBatch, history: History | None) -> v1.AttributedBatch:
    """Fill in the owners as of the batch's time; without a history (no word in time) every owner is unknown."""
    at_ns = batch.taken_at_ns
    shared: list[tuple[int, list[Holding]]] = []
    for position, row in enumerate(batch.rows):
        holders = None if history is None else history.holders(row.uid, at_ns)
        if holders is None:
            row.MergeFromString(_UNKNOWN_ROW)
        elif not holders:
            row.MergeFromString(_IDLE_ROW)
        elif len(holders) == 1:
            row.MergeFromString(holders[0].row)
        else:
            shared.append((position, holders))
    return _split(batch, shared) if shared else batch


def _split(batch: v1.AttributedBatch, shared: list[tuple[int, list[Holding]]]) -> v1.AttributedBatch:
    """Replace each shared device's row by one row per holder, in place and in order."""
    holders_at = dict(shared)
    rows = list(batch.rows)
    split = v1.AttributedBatch()
    split.CopyFrom(batch)
    del split.rows[:]
    for position, row in enumerate(rows):
        if position not in holders_at:
            split.rows.add().CopyFrom(row)
            continue
        holders = holders_at[position]
        whole = sum(h.weight for h in holders)
        for holding in holders:
            share = holding.weight / whole
            part = split.rows.add(uid=row.uid)
            part.MergeFromString(holding.row)
            part.owner_state = v1.OwnerState.OWNER_STATE_SHARED
            part.share_ratio = share
            if row.HasField("utilization_ratio"):
                part.utilization_ratio = row.utilization_ratio * share
            if row.HasField("power_watts"):
                part.power_watts = row.power_watts * share
            if row.HasField("energy_joules"):
                part.energy_joules = row.energy_joules * share
    return split
