"""Rows written as bytes are read by protobuf as what the device said."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.telemetry import v1
from streams.operators.attribute.rows import Meter, own, ownerless

floats = st.none() | st.floats(width=32, allow_nan=False)
numbers = st.none() | st.integers(0, 2**64 - 1) | st.sampled_from([0, 127, 128, 2**63])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=200), floats, numbers, floats, st.none() | st.floats(0, 1e18)), max_size=5))
def test_a_row_says_what_its_device_said(said: list[tuple[str, float | None, int | None, float | None, float | None]]) -> None:
    batch = v1.SampleBatch(cluster="c", node="n", source="s", agent_epoch=2**64 - 1, sequence=300, taken_at_ns=20, interval_ns=5)
    meters: dict[str, Meter] = {}
    for uid, utilization, memory, power, joules in said:
        batch.devices.add(
            uid=uid,
            utilization_ratio=utilization,
            memory_used_bytes=memory,
            power_watts=power,
            energy_joules=None if joules is None else joules + 1,
        )
        if joules is not None:
            meters[uid] = (("", 0), 10, joules)
    found = v1.AttributedBatch.FromString(own(ownerless(batch, meters), None))
    assert (found.cluster, found.node, found.source, found.agent_epoch, found.sequence) == ("c", "n", "s", 2**64 - 1, 300)
    assert (found.taken_at_ns, found.interval_ns, len(found.rows)) == (20, 5, len(said))
    for row, (uid, utilization, memory, power, _) in zip(found.rows, said, strict=True):
        assert (row.uid, row.owner_state, row.share_ratio) == (uid, v1.OwnerState.OWNER_STATE_UNKNOWN, 1.0)
        for name, value in (("utilization_ratio", utilization), ("memory_used_bytes", memory), ("power_watts", power)):
            assert (getattr(row, name) if row.HasField(name) else None) == value
        assert not row.HasField("energy_joules") or math.isfinite(row.energy_joules)
    once = {uid for uid, *_ in said if [u for u, *_ in said].count(uid) == 1}
    for row, (uid, _, _, _, joules) in zip(found.rows, said, strict=True):
        if uid in once and joules is not None:
            assert row.energy_joules == (joules + 1) - joules
