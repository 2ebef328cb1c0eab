"""Holds each node's samples until its allocations have spoken of their instant, then says whose they are; in order, and bounded.

A sample is joined once the node's allocation watermark has reached it, and as *unknown* when it has waited too long. How long is
measured from its arrival (the broker's time), not by its node's clock, which may be wrong. Waiting ends by a Tick, since the Tick
alone knows that the allocations' partition was read that far as well; a node's own later samples end it only after four
times as long: when both topics have a backlog, samples may be read far ahead of the allocations that explain them.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.flow import Tick
from schemas.identity import NodeRef
from schemas.telemetry import v1
from streams.operators.attribute.history import History
from streams.operators.attribute.rows import Meter, Ownerless, own, ownerless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OWN_TIME: Final = 4
_SET_BACK_NS: Final = 60 * 1_000_000_000
"""A new snapshot that is older than the last one by more than this comes from a clock that was set, not from a late message."""

_FREED: Final = 0.95
"""A full buffer is emptied down to this share at once, so that finding the oldest is paid once and not per batch."""


class Arrived(NamedTuple):
    """A batch of samples and when the broker got it, ns UTC."""

    batch: v1.SampleBatch
    arrived_at_ns: int


Item = Arrived | v1.AllocationSnapshot | Tick


@dataclass(frozen=True, slots=True)
class Join:
    """What bounds the join: how long a sample waits, and how many device samples of a node and altogether may."""

    wait_ns: int
    node_samples: int
    total_samples: int


class Joined(NamedTuple):
    """A serialised AttributedBatch and whose it is."""

    ref: NodeRef
    value: bytes


class _Waiting(NamedTuple):
    arrived_at_ns: int
    rows: Ownerless

    @property
    def samples(self) -> int:
        return len(self.rows.uids)


@dataclass(slots=True)
class _Node:
    history: History = field(default_factory=History)
    meters: dict[str, Meter] = field(default_factory=dict)
    waiting: deque[_Waiting] = field(default_factory=deque)
    samples: int = 0


@dataclass(slots=True)
class State:
    """Every node's history and waiting samples. `unknown` counts by reason the device samples joined without word of an owner."""

    limits: Join
    nodes: dict[NodeRef, _Node] = field(default_factory=dict)
    waiting: dict[NodeRef, _Node] = field(default_factory=dict)
    samples: int = 0
    unknown: Counter[str] = field(default_factory=Counter)


def empty(limits: Join) -> State:
    return State(limits)


def step(state: State, items: Sequence[Item]) -> tuple[State, list[Joined]]:
    """Take items in; the batches that are now joined come out, those of one node in the order of their arrival."""
    outs: list[Joined] = []
    for item in items:
        if isinstance(item, Arrived):
            outs += _arrive(state, item)
        elif isinstance(item, Tick):
            for ref in list(state.waiting):
                outs += _expire(state, ref, item.at_ns - state.limits.wait_ns)
        else:
            ref = NodeRef(item.cluster, item.node)
            node = state.nodes.setdefault(ref, _Node())
            if node.history.take(item) and node.waiting:
                outs += _release(state, ref)
    return state, outs


def forget_future(state: State, snapshot: v1.AllocationSnapshot) -> None:
    """Forget what a node said while its clock was ahead; else nothing it says would count until that time has come.

    `snapshot` must be newer on the topic than whatever was taken in: one that is read again is older for another reason.
    """
    node = state.nodes.get(NodeRef(snapshot.cluster, snapshot.node))
    if node is not None and snapshot.taken_at_ns + _SET_BACK_NS < node.history.watermark_ns:
        node.history = History()
        node.meters.clear()


def _arrive(state: State, item: Arrived) -> Iterator[Joined]:
    batch, arrived_at_ns = item
    ref = NodeRef(batch.cluster, batch.node)
    node = state.nodes.get(ref)
    if node is None:
        node = state.nodes[ref] = _Node()
    rows = ownerless(batch, node.meters)
    if node.waiting:
        yield from _expire(state, ref, arrived_at_ns - _OWN_TIME * state.limits.wait_ns)
    if not node.waiting and batch.taken_at_ns <= node.history.watermark_ns:
        yield Joined(ref, own(rows, node.history))
        return
    count = len(rows.uids)
    node.waiting.append(_Waiting(arrived_at_ns, rows))
    node.samples += count
    state.samples += count
    state.waiting[ref] = node
    while node.samples > state.limits.node_samples and node.waiting:
        yield _give_up(state, ref, "node_buffer_full")
        yield from _release(state, ref)
    if state.samples > state.limits.total_samples:
        yield from _free(state)


def _release(state: State, ref: NodeRef) -> Iterator[Joined]:
    """Join from the head whatever the watermark has reached."""
    node = state.nodes[ref]
    while node.waiting and node.waiting[0].rows.taken_at_ns <= node.history.watermark_ns:
        yield Joined(ref, own(_pop(state, ref), node.history))


def _expire(state: State, ref: NodeRef, arrived_before_ns: int) -> Iterator[Joined]:
    """Join as unknown what arrived at or before that instant, and what then is free to go."""
    node = state.nodes[ref]
    while node.waiting and node.waiting[0].arrived_at_ns <= arrived_before_ns:
        yield _give_up(state, ref, "no_allocations_in_time")
        yield from _release(state, ref)


def _free(state: State) -> Iterator[Joined]:
    """Join the oldest of all nodes as unknown until there is room again."""
    heap = [(node.waiting[0].arrived_at_ns, ref) for ref, node in state.waiting.items()]
    heapq.heapify(heap)
    while heap and state.samples > state.limits.total_samples * _FREED:
        _, ref = heapq.heappop(heap)
        yield _give_up(state, ref, "total_buffer_full")
        yield from _release(state, ref)
        if ref in state.waiting:
            heapq.heappush(heap, (state.waiting[ref].waiting[0].arrived_at_ns, ref))


def _give_up(state: State, ref: NodeRef, reason: str) -> Joined:
    state.unknown[reason] += state.nodes[ref].waiting[0].samples
    return Joined(ref, own(_pop(state, ref), None))


def _pop(state: State, ref: NodeRef) -> Ownerless:
    node = state.nodes[ref]
    head = node.waiting.popleft()
    node.samples -= head.samples
    state.samples -= head.samples
    if not node.waiting:
        del state.waiting[ref]
    return head.rows
