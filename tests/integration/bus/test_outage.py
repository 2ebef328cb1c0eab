"""The bus is away for a while under a running agent: after it is back nothing is missing, times are the original ones, order is kept.

Thirty seconds at 20 Hz write as many batches as ten minutes at 1 Hz. The ten minutes themselves:

    OUTAGE_SECONDS=600 OUTAGE_HERTZ=1 pytest tests/integration/bus/test_outage.py -s
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from schemas import topics
from schemas.telemetry import v1
from tests.integration.stack import PARTITIONS, Role, Stack, kafka_bus
from xpulse.bus.embedded import EmbeddedBroker
from xpulse.bus.replay import PROBE_RECORDS
from xpulse.bus.settings import Bus

if TYPE_CHECKING:
    from tests.integration.servers.kafka import KafkaServer

SECONDS: Final = float(os.environ.get("OUTAGE_SECONDS", "30"))
HERTZ: Final = float(os.environ.get("OUTAGE_HERTZ", "20"))
BEFORE_SECONDS: Final = 5.0
pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 400)]


@dataclass(frozen=True, slots=True)
class Place:
    """A bus, and how it goes and comes back."""

    bus: Bus
    away: Callable[[], None]
    back: Callable[[], None]


@contextmanager
def embedded_place() -> Iterator[Place]:
    """The embedded broker with its door closed. To the agent it is a bus like any other: behind `xpulse up` it would not spool."""
    with EmbeddedBroker(tuple((row.name, row.partitions or PARTITIONS) for row in topics.TOPICS)) as broker:
        bus = Bus(brokers=broker.bootstrap, topic_prefix="", partitions=PARTITIONS, replication_factor=1, min_insync_replicas=1)
        yield Place(bus, lambda: broker.set_reachable(False), lambda: broker.set_reachable(True))


@contextmanager
def killed_place(server: KafkaServer) -> Iterator[Place]:
    """Kafka is killed; it comes back with the data it had."""
    yield Place(kafka_bus(server), server.kill, server.start)


@contextmanager
def frozen_place(server: KafkaServer) -> Iterator[Place]:
    """Kafka stops answering and keeps its connections; then it goes on, with what was sent to it meanwhile."""
    try:
        yield Place(kafka_bus(server), lambda: os.kill(server.pid, signal.SIGSTOP), lambda: os.kill(server.pid, signal.SIGCONT))
    finally:
        os.kill(server.pid, signal.SIGCONT)


@pytest.fixture(
    params=["embedded", pytest.param("killed", marks=pytest.mark.integration), pytest.param("frozen", marks=pytest.mark.integration)]
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """The embedded bus, and a real Kafka that goes in two ways."""
    if request.param == "embedded":
        chosen: AbstractContextManager[Place] = embedded_place()
    else:
        server: KafkaServer = request.getfixturevalue("own_kafka")
        chosen = killed_place(server) if request.param == "killed" else frozen_place(server)
    with chosen as made:
        yield made


@dataclass(slots=True)
class Figures:
    """What the run was like, printed at its end."""

    outage_seconds: float = 0.0
    spooled: int = 0
    spool_bytes: int = 0
    resident_before_mb: float = 0.0
    resident_outage_mb: float = 0.0
    resident_after_mb: float = 0.0
    drained_seconds: float = 0.0
    batches: int = 0
    replayed: int = 0
    duplicates: int = 0
    sent_twice: int = 0
    dropped: int = 0
    events: int = 0
    not_ready: str = ""


def test_nothing_is_lost_and_order_and_times_are_kept(place: Place, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    figures = Figures()
    plugins = {"simulated": {"settings": {"nodes": 2, "devices_per_node": 4, "seed": 7}}}
    environment = {
        "XPULSE_COLLECTORS__INTERVAL_SECONDS": str(1 / HERTZ),
        "XPULSE_COLLECTORS__PLUGINS": json.dumps(plugins),
        "XPULSE_NORTHBOUND__SPOOL__PATIENCE_SECONDS": "2",
    }
    with Stack(place.bus, tmp_path, environment) as stack:
        agent = stack.start("agent")
        stack.ready()
        time.sleep(BEFORE_SECONDS)
        figures.resident_before_mb = resident_mb(agent)
        began_ns, began = time.time_ns(), time.monotonic()
        place.away()
        time.sleep(SECONDS)
        figures.resident_outage_mb = resident_mb(agent)
        figures.spooled, figures.spool_bytes = int(metric(agent, "xpulse_spool_records")), int(metric(agent, "xpulse_spool_bytes"))
        status = agent.status()
        figures.not_ready = "" if status is None or status.ready else status.why_not
        figures.outage_seconds = time.monotonic() - began
        place.back()
        back_ns = time.time_ns()
        stack.until(lambda: metric(agent, "xpulse_spool_records") == 0, "the spool is empty", seconds=120)
        figures.drained_seconds = (time.time_ns() - back_ns) / 1e9
        time.sleep(2)
        figures.resident_after_mb = resident_mb(agent)
        figures.sent_twice = int(metric(agent, "xpulse_bus_sent_twice_total"))
        figures.dropped = round(sum(float(v) for v in re.findall(r"^xpulse_dropped_total\{[^}]*\} (\S+)$", agent.metrics(), re.MULTILINE)))
        assert agent.stop() == 0
        batches = [m for m in stack.messages(topics.SAMPLES) if isinstance(m, v1.SampleBatch)]
        figures.events = len(stack.messages(topics.ALLOCATIONS))

    by_node: dict[tuple[str, int], list[v1.SampleBatch]] = defaultdict(list)
    for batch in batches:
        by_node[batch.node, batch.agent_epoch].append(batch)
    figures.batches = len(batches)
    figures.replayed = sum(batch.replayed for batch in batches)
    for told in by_node.values():
        once = list({batch.sequence: batch for batch in reversed(told)}.values())[::-1]
        figures.duplicates += len(told) - len(once)
    sys.stdout.write(f"\n{request.node.name}: {json.dumps(asdict(figures))}\n")

    assert len(by_node) == 2  # one life of the agent, two nodes
    for told in by_node.values():
        first_seen = list(dict.fromkeys(batch.sequence for batch in told))
        assert first_seen == list(range(len(first_seen)))  # every sequence, in order
        taken = {batch.sequence: batch.taken_at_ns for batch in told}
        assert all((batch.taken_at_ns == taken[batch.sequence]) for batch in told)
        in_order = [taken[n] for n in first_seen]
        assert all(later > earlier for earlier, later in itertools.pairwise(in_order))
        during = [at_ns for at_ns in in_order if began_ns <= at_ns < began_ns + SECONDS * 1e9]
        # the times of the reads, not of the sending; a machine under load skips ticks, which a gap in the sequence would hide
        assert len(during) > 0.8 * SECONDS * HERTZ
    # what asked the silent bus whether it is back waited for the answer with the time of the question
    asked = [batch for batch in batches if batch.replayed and batch.sent_at_ns < back_ns - 60e9]
    assert len(asked) <= PROBE_RECORDS
    assert figures.dropped == 0
    assert figures.spooled > 1.6 * (SECONDS - 5) * HERTZ
    assert figures.replayed > 1.6 * (SECONDS - 5) * HERTZ
    assert figures.duplicates <= figures.sent_twice
    assert figures.not_ready.startswith("bus unreachable for")
    assert "messages spooled" in figures.not_ready
    assert figures.resident_outage_mb < figures.resident_before_mb + 8  # it waits on disk


def test_an_agent_killed_in_the_outage_loses_no_more_than_its_patience(tmp_path: Path) -> None:
    """And the next one sends what was written, before anything of its own."""
    patience_seconds = 1.0
    environment = {
        "XPULSE_COLLECTORS__INTERVAL_SECONDS": "0.1",
        "XPULSE_COLLECTORS__PLUGINS": json.dumps({"simulated": {"settings": {"nodes": 1, "devices_per_node": 2, "seed": 7}}}),
        "XPULSE_NORTHBOUND__SPOOL__PATIENCE_SECONDS": str(patience_seconds),
    }
    with embedded_place() as place, Stack(place.bus, tmp_path, environment) as stack:
        first = stack.start("agent")
        stack.ready()
        place.away()
        stack.until(lambda: metric(first, "xpulse_spool_records") > 60, "something is on disk")
        first.kill()
        killed_ns = time.time_ns()
        first.process.wait()
        stack.roles.remove(first)
        stack.start("agent")
        time.sleep(2)
        place.back()

        def batches() -> list[v1.SampleBatch]:
            return [m for m in stack.messages(topics.SAMPLES) if isinstance(m, v1.SampleBatch)]

        stack.until(lambda: len({batch.agent_epoch for batch in batches()}) == 2, "the second agent is heard")
        told = batches()
    old_epoch = min(batch.agent_epoch for batch in told)
    old = [batch for batch in told if batch.agent_epoch == old_epoch]
    sequences = list(dict.fromkeys(batch.sequence for batch in old))
    assert sequences == list(range(len(sequences)))
    assert old[-1].taken_at_ns > killed_ns - (patience_seconds + 0.5) * 1e9
    assert [batch.agent_epoch == old_epoch for batch in told] == sorted((batch.agent_epoch == old_epoch for batch in told), reverse=True)


def metric(role: Role, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", role.metrics(), re.MULTILINE)
    assert found, f"{name} is not among the metrics"
    return float(found[1])


def resident_mb(role: Role) -> float:
    """Of the agent's own process, its plugin's apart."""
    words = Path(f"/proc/{role.process.pid}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"VmRSS:\s+(\d+) kB", words)
    assert found
    return int(found[1]) / 1000
