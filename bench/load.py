"""What a fleet of agents publishes, serialised before the clock starts: a few simulated nodes, each repeated under many names.

A template node is read by the simulated plugin and numbered by the agent's own publisher, so samples are thin with every 60th full,
counters and allocations are consistent, and a fault on one card of one template gives findings. A replica differs in the names of its
nodes and devices only; they have the length of the template's, so a replica's bytes are made by replacing bytes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from collectors.contract import Env
from collectors.publisher import Publisher
from collectors.simulated.plugin import create
from schemas import topics
from schemas.identity import NodeRef
from schemas.telemetry import v1

if TYPE_CHECKING:
    from schemas.catalogue import Cadence

SECOND_NS: Final = 1_000_000_000
CLUSTER: Final = "bench"
SOURCE: Final = "simulated"
MOST_REPLICAS: Final = 256
SLOW_EVERY: Final = 10
"""Seconds between two reads of slow fields; a thin sample leaves them out unless they changed."""

_NODE: Final = b"bench-%03x-"
_UID: Final = b"nvidia:%03x"
_TEMPLATE_UID: Final = b"simulated:"
LEFT_OUT: Final = frozenset({topics.INFERENCE})
"""No device sample leads to these: inference servers have their own rate."""


class Sent(NamedTuple):
    """A message ready to be sent."""

    topic: str
    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a load is. `templates` nodes are simulated; each stands for `replicas` nodes."""

    templates: int
    replicas: int
    devices: int
    ticks: int

    @property
    def nodes(self) -> int:
        return self.templates * self.replicas

    @property
    def samples_per_tick(self) -> int:
        return self.nodes * self.devices


@dataclass(frozen=True, slots=True)
class Load:
    """`ticks[t]` are the templates' messages of the t-th second of event time, which begins at `started_at_ns`."""

    shape: Shape
    started_at_ns: int
    inventory: list[Sent] = field(repr=False)
    ticks: list[list[Sent]] = field(repr=False)

    def first(self) -> Iterator[Sent]:
        """The inventory of every node: published before the clock starts, as a fleet's is known long before."""
        return _replicated(self.inventory, self.shape.replicas)

    def tick(self, number: int) -> Iterator[Sent]:
        """What all nodes publish in that second of event time, node after node."""
        return _replicated(self.ticks[number], self.shape.replicas)

    def closing(self, number: int) -> Iterator[Sent]:
        """Each node's allocations once more, as of that tick: without them its last samples would wait for their owners in vain."""
        at_ns = self.started_at_ns + number * SECOND_NS
        newest = {m.key: m for messages in self.ticks[: number + 1] for m in messages if m.topic == topics.ALLOCATIONS}
        again = []
        for message in newest.values():
            snapshot = v1.AllocationSnapshot.FromString(message.value)
            snapshot.taken_at_ns = at_ns
            again.append(Sent(message.topic, message.key, snapshot.SerializeToString()))
        return _replicated(again, self.shape.replicas)

    def counts(self, ticks: int) -> Counter[str]:
        """Messages by topic of the first so many ticks."""
        found: Counter[str] = Counter()
        for messages in self.ticks[:ticks]:
            found.update(message.topic for message in messages)
        return Counter({topic: count * self.shape.replicas for topic, count in found.items()})

    def batches(self, ticks: int) -> Iterator[v1.SampleBatch]:
        """The SampleBatches of the first so many ticks, in the order of sending."""
        for number in range(ticks):
            for message in self.tick(number):
                if message.topic == topics.SAMPLES:
                    yield v1.SampleBatch.FromString(message.value)


def make(shape: Shape, *, ends_at_ns: int, seed: int = 7, on_tick: Callable[[int], None] = lambda _: None) -> Load:
    """Simulate the templates. Event time ends at `ends_at_ns`. About 0.1 ms a template device and tick (measured)."""
    if not 1 <= shape.replicas <= MOST_REPLICAS:
        raise ValueError(f"{shape.replicas} replicas: 1 to {MOST_REPLICAS} have names of one length")
    started_at_ns = ends_at_ns - shape.ticks * SECOND_NS
    now_ns = started_at_ns
    host = NodeRef(CLUSTER, "host")
    plugin = create(
        {
            "nodes": shape.templates,
            "devices_per_node": shape.devices,
            "node_prefix": (_NODE % 0).decode(),
            "clusters": [CLUSTER],
            "seed": seed,
            "started_at_ns": started_at_ns,
            # One card of the templates, soon and for a minute: findings begin, are repeated, and end.
            "faults": [f"thermal@{min(15, shape.ticks // 3)}s+{min(60, shape.ticks // 3)}s"],
        },
        Env(host, boot_id="bench", agent_version="bench", interval_ns=SECOND_NS),
        clock=lambda: now_ns,
    )
    publisher = Publisher(SOURCE, host, agent_epoch=started_at_ns, interval_ns=SECOND_NS)
    inventory: list[Sent] = []
    ticks: list[list[Sent]] = []
    for number in range(shape.ticks):
        due: frozenset[Cadence] = frozenset(("fast", "slow") if number % SLOW_EVERY == 0 else ("fast",))
        outs = publisher.outs(plugin.read(due, time.monotonic() + 60.0), now_ns)
        sent = [Sent(out.topic, out.key, out.value) for out in outs if out.value is not None and out.topic not in LEFT_OUT]
        inventory += [message for message in sent if message.topic == topics.INVENTORY]
        ticks.append([message for message in sent if message.topic != topics.INVENTORY])
        now_ns += SECOND_NS
        on_tick(number)
    return Load(shape, started_at_ns, inventory, ticks)


def _replicated(messages: list[Sent], replicas: int) -> Iterator[Sent]:
    node = _NODE % 0
    for replica in range(replicas):
        node_now, uid_now = _NODE % replica, _UID % replica
        for topic, key, value in messages:
            yield Sent(
                topic,
                key.replace(node, node_now).replace(_TEMPLATE_UID, uid_now),
                value.replace(node, node_now).replace(_TEMPLATE_UID, uid_now),
            )
