"""Samples joined with allocations by event time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.flow import Tick
from schemas.telemetry import v1
from streams.operators import attribute
from streams.operators.attribute import Arrived, Join, State, empty
from streams.operators.attribute.join import Item
from tests.unit.streams.attribute.build import S, allocation, at, batch, snapshot

LIMITS = Join(wait_ns=15 * S, node_samples=100, total_samples=1000)
KNOWN, IDLE, UNKNOWN, SHARED = (v1.OwnerState.Value(f"OWNER_STATE_{n}") for n in ("KNOWN", "IDLE", "UNKNOWN", "SHARED"))


def arrived(message: v1.SampleBatch, seconds: float | None = None) -> Arrived:
    return Arrived(message, message.taken_at_ns if seconds is None else at(seconds))


def step(state: State, items: Sequence[Item]) -> tuple[State, list[v1.AttributedBatch]]:
    state, joined = attribute.step(state, items)
    batches = [v1.AttributedBatch.FromString(one.value) for one in joined]
    assert [one.ref for one in joined] == [(b.cluster, b.node) for b in batches]
    return state, batches


def run(*items: Item, limits: Join = LIMITS) -> list[v1.AttributedBatch]:
    return step(empty(limits), items)[1]


def owners(batches: list[v1.AttributedBatch]) -> list[tuple[int, str, str]]:
    return [(b.sequence, v1.OwnerState.Name(r.owner_state)[12:], r.workload.pod) for b in batches for r in b.rows]


def test_a_sample_waits_for_the_watermark_and_gets_the_owner_of_its_instant() -> None:
    state = empty(LIMITS)
    _, early = step(state, [snapshot(0, allocation("a", 0)), arrived(batch(4)), arrived(batch(6, sequence=1))])
    assert early == []
    _, joined = step(state, [snapshot(10, allocation("a", 0, 5), allocation("b", 5))])
    assert owners(joined) == [(0, "KNOWN", "a"), (1, "KNOWN", "b")]
    assert joined[0].rows[0].allocation_id == "a-d0"
    assert (joined[0].taken_at_ns, joined[0].interval_ns, joined[0].agent_epoch) == (at(4), S, 1)


def test_a_sample_below_the_watermark_is_joined_at_once() -> None:
    assert owners(run(snapshot(10, allocation("a", 0)), arrived(batch(10)))) == [(0, "KNOWN", "a")]


def test_a_device_nobody_holds_is_idle() -> None:
    assert owners(run(snapshot(10), arrived(batch(10)))) == [(0, "IDLE", "")]


def test_without_word_in_time_the_owner_is_unknown() -> None:
    state = empty(LIMITS)
    assert step(state, [arrived(batch(0)), Tick(at(14.999))])[1] == []
    assert owners(step(state, [Tick(at(15))])[1]) == [(0, "UNKNOWN", "")]
    assert state.unknown == {"no_allocations_in_time": 1}


def test_the_wait_is_measured_from_the_arrival_not_by_the_nodes_wrong_clock() -> None:
    state = empty(LIMITS)
    an_hour_behind = arrived(batch(-3600), 0)
    assert step(state, [an_hour_behind, Tick(at(5))])[1] == []
    assert owners(step(state, [snapshot(-3599, allocation("a", -4000))])[1]) == [(0, "KNOWN", "a")]


def test_later_samples_alone_end_the_wait_after_four_times_as_long() -> None:
    assert run(arrived(batch(0)), arrived(batch(59, sequence=1))) == []
    assert owners(run(arrived(batch(0)), arrived(batch(60, sequence=1)))) == [(0, "UNKNOWN", "")]


def test_order_is_kept_per_node_when_a_later_sample_could_be_joined_first() -> None:
    joined = run(arrived(batch(20, sequence=1)), arrived(batch(5, sequence=2)), snapshot(10), Tick(at(30)), Tick(at(35)))
    assert [b.sequence for b in joined] == [1, 2]
    assert owners(joined) == [(1, "UNKNOWN", ""), (2, "IDLE", "")]


def test_nodes_do_not_wait_for_one_another() -> None:
    joined = run(arrived(batch(1, node="n1")), arrived(batch(1, node="n2")), snapshot(2, node="n2"))
    assert [b.node for b in joined] == ["n2"]


def test_a_shared_device_is_split_by_promised_share_and_memory_is_not_invented() -> None:
    two = (allocation("a", 0, share=0.25), allocation("b", 1, share=0.5))
    first, second = run(snapshot(3, *two), arrived(batch(2, energy=10)), arrived(batch(3, energy=40)))
    assert owners([second]) == [(0, "SHARED", "a"), (0, "SHARED", "b")]
    a, b = second.rows
    assert a.share_ratio == pytest.approx(1 / 3)
    assert [a.power_watts, b.power_watts] == pytest.approx([100, 200])
    assert [a.energy_joules, b.energy_joules] == pytest.approx([10, 20])
    assert [a.utilization_ratio, b.utilization_ratio] == pytest.approx([0.5 / 3, 1 / 3])
    assert not a.HasField("memory_used_bytes")
    assert not first.rows[0].HasField("energy_joules")


def test_shares_that_nobody_promised_are_equal_parts_and_other_devices_keep_their_place() -> None:
    (joined,) = run(
        snapshot(3, allocation("a", 0, uid="d1"), allocation("b", 0, uid="d1"), allocation("c", 0, uid="d2")),
        arrived(batch(3, "d0", "d1", "d2")),
    )
    assert [(r.uid, r.workload.pod, r.share_ratio) for r in joined.rows] == [
        ("d0", "", 1.0),
        ("d1", "a", 0.5),
        ("d1", "b", 0.5),
        ("d2", "c", 1.0),
    ]


@pytest.mark.parametrize(
    ("second", "energy"),
    [
        (batch(2, energy=150), 50.0),
        (batch(2, energy=90), None),
        (batch(2, energy=150, boot="b2"), None),
        (batch(1, energy=150), None),
        (batch(2), None),
    ],
    ids=["grew", "fell in one epoch", "a new epoch", "not later", "not said"],
)
def test_energy_is_the_counters_growth_within_its_epoch(second: v1.SampleBatch, energy: float | None) -> None:
    last = run(snapshot(9), arrived(batch(1, energy=100)), arrived(second))[-1].rows[0]
    assert (last.energy_joules if last.HasField("energy_joules") else None) == energy


def test_absent_stays_absent() -> None:
    bare = v1.SampleBatch(cluster="c", node="n1", source="sim", agent_epoch=1, taken_at_ns=at(1))
    bare.devices.add(uid="d0")
    row = run(snapshot(2), arrived(bare))[0].rows[0]
    assert [f.name for f, _ in row.ListFields()] == ["uid", "owner_state", "share_ratio"]


def test_a_full_node_buffer_lets_the_oldest_go_as_unknown_and_counts_it() -> None:
    state = empty(Join(wait_ns=15 * S, node_samples=3, total_samples=1000))
    _, joined = step(state, [arrived(batch(t, "d0", "d1", sequence=t)) for t in range(3)])
    assert owners(joined) == [(0, "UNKNOWN", ""), (0, "UNKNOWN", ""), (1, "UNKNOWN", ""), (1, "UNKNOWN", "")]
    assert state.unknown == {"node_buffer_full": 4}


def test_a_full_buffer_lets_the_oldest_of_all_nodes_go() -> None:
    state = empty(Join(wait_ns=15 * S, node_samples=1000, total_samples=4))
    _, joined = step(state, [arrived(batch(t, node=f"n{t}", sequence=t)) for t in (3, 1, 2, 4, 5)])
    assert [b.node for b in joined] == ["n1", "n2"]
    assert state.unknown == {"total_buffer_full": 2}
    assert state.samples == sum(node.samples for node in state.nodes.values()) == 3


nodes = st.sampled_from(["n1", "n2"])
seconds = st.integers(0, 40)
items = st.lists(
    st.one_of(
        st.builds(
            lambda t, n, e: arrived(batch(t, "d0", "d1", node=n, energy=e)), seconds, nodes, st.none() | st.integers(0, 100).map(float)
        ),
        st.builds(lambda t, n, s: snapshot(t, allocation("a", 0), allocation("b", s, s + 9), node=n), seconds, nodes, seconds),
        st.builds(lambda t: Tick(at(t)), seconds),
    ),
    max_size=25,
)


@given(items, st.data())
def test_two_steps_are_one(sequence: list[Item], data: st.DataObject) -> None:
    limits = Join(wait_ns=15 * S, node_samples=6, total_samples=9)
    cut = data.draw(st.integers(0, len(sequence)))
    whole, once = step(empty(limits), sequence)
    parts: State = empty(limits)
    _, first = step(parts, sequence[:cut])
    _, second = step(parts, sequence[cut:])
    assert first + second == once
    assert (parts.samples, parts.unknown) == (whole.samples, whole.unknown)


@given(items)
def test_every_batch_comes_out_exactly_once_and_in_order(sequence: list[Item]) -> None:
    numbered: list[Item] = []
    for number, item in enumerate(sequence):
        if isinstance(item, Arrived):
            renumbered = v1.SampleBatch()
            renumbered.CopyFrom(item.batch)
            renumbered.sequence = number
            item = Arrived(renumbered, item.arrived_at_ns)
        numbered.append(item)
    outs = run(*numbered, Tick(at(1000)))
    for node in ("n1", "n2"):
        given_in = [i.batch.sequence for i in numbered if isinstance(i, Arrived) and i.batch.node == node]
        assert [b.sequence for b in outs if b.node == node] == given_in
