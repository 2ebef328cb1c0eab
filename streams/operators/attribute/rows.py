"""Makes the rows of an AttributedBatch: first what the devices said, then, once it is known, whose it was.

A device that several workloads share is split by their promised shares. Only flows are split (power, energy, busy time): they
add up, and the parts again give the device's reading. Memory is a stock: what a workload holds has nothing to do with what it was
promised, so its row says nothing of memory until a source that sees processes does. Board energy is split whole: also the part
that an idle card draws is paid by those who hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from schemas.telemetry import v1

if TYPE_CHECKING:
    from streams.operators.attribute.history import History, Holding

_KNOWN = v1.OwnerState.OWNER_STATE_KNOWN
_IDLE = v1.OwnerState.OWNER_STATE_IDLE
_UNKNOWN = v1.OwnerState.OWNER_STATE_UNKNOWN
_SHARED = v1.OwnerState.OWNER_STATE_SHARED


class Meter(NamedTuple):
    """Last reading of a device's energy counter. A counter's epoch is the boot of its node and the load of its driver."""

    boot_id: str
    driver_epoch: int
    taken_at_ns: int
    joules: float


def ownerless(batch: v1.SampleBatch, meters: dict[str, Meter]) -> v1.AttributedBatch:
    """One row per device, without owner; `meters` (by uid) is read for the energy used since, and brought up to date.

    Energy is absent without an earlier reading in the same counter epoch, where the counter fell within one, and for a batch
    that is older than the last one.
    """
    taken_at_ns, boot_id, driver_epoch = batch.taken_at_ns, batch.boot_id, batch.driver_epoch
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
        uid = device.uid
        row = add(uid=uid, share_ratio=1.0)
        has = device.HasField
        if has("utilization_ratio"):
            row.utilization_ratio = device.utilization_ratio
        if has("memory_used_bytes"):
            row.memory_used_bytes = device.memory_used_bytes
        if has("power_watts"):
            row.power_watts = device.power_watts
        if has("energy_joules"):
            joules = device.energy_joules
            last = meters.get(uid)
            if last is None or taken_at_ns > last.taken_at_ns:
                meters[uid] = Meter(boot_id, driver_epoch, taken_at_ns, joules)
                if last is not None and last.boot_id == boot_id and last.driver_epoch == driver_epoch and joules >= last.joules:
                    row.energy_joules = joules - last.joules
    return made


def own(batch: v1.AttributedBatch, history: History | None) -> v1.AttributedBatch:
    """Fill in the owners as of the batch's time; without a history (no word in time) every owner is unknown."""
    at_ns = batch.taken_at_ns
    shared: list[tuple[int, list[Holding]]] = []
    for position, row in enumerate(batch.rows):
        holders = None if history is None else history.holders(row.uid, at_ns)
        if holders is None:
            row.owner_state = _UNKNOWN
        elif not holders:
            row.owner_state = _IDLE
        elif len(holders) == 1:
            _give(row, _KNOWN, holders[0])
        else:
            shared.append((position, holders))
    return _split(batch, shared) if shared else batch


def _give(row: v1.Attributed, state: v1.OwnerState, holding: Holding) -> None:
    row.owner_state = state
    row.allocation_id = holding.allocation.id
    row.workload.CopyFrom(holding.allocation.workload)


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
            part = split.rows.add(uid=row.uid, share_ratio=share)
            _give(part, _SHARED, holding)
            if row.HasField("utilization_ratio"):
                part.utilization_ratio = row.utilization_ratio * share
            if row.HasField("power_watts"):
                part.power_watts = row.power_watts * share
            if row.HasField("energy_joules"):
                part.energy_joules = row.energy_joules * share
    return split
