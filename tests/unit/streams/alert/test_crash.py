"""Whenever the alert role dies, each episode fires once and resolves once: every cut of what it writes, then a restart and a replay."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import topics
from schemas.flow import Barrier, Emitted, Out, Partition, Record, Tick
from schemas.telemetry import v1
from streams.processors.alert import AlertProcessor
from streams.settings import Alerting
from tests.fakes.log_reader import LogReader
from tests.unit.streams.alert.build import at, finding, record

OWNED = frozenset({Partition(topics.FINDINGS, 0)})
Input = v1.Finding | Tick


class Died(Exception):
    """The process was killed."""


@dataclass
class World:
    """The bus, the committed place in the input, and a process that dies after `lives[i]` messages in its i-th life."""

    inputs: list[Input]
    lives: list[int]
    batch: int
    logs: dict[tuple[str, int], list[Record]] = field(default_factory=lambda: {(topics.ALERT_STATE, 0): [], (topics.ALERTS, 0): []})
    committed: int = 0
    commit_every: int = 1

    def live(self) -> list[tuple[str, str, int, str]]:
        for budget in [*self.lives, 10**9]:
            try:
                self._run(budget)
            except Died:
                continue
        return [(a.fingerprint, a.episode, a.status, a.incident) for a in self.alerts()]

    def alerts(self) -> list[v1.Alert]:
        return [v1.Alert.FromString(r.value or b"") for r in self.logs[topics.ALERTS, 0]]

    def _run(self, budget: int) -> None:
        self._left = budget
        role = AlertProcessor.of(Alerting(signal_lost_grace_seconds=5))
        role.restore(LogReader(self.logs), OWNED)
        place, done = self.committed, 0
        while place < len(self.inputs):
            match self.inputs[place]:
                case Tick() as tick:
                    self._publish(list(role.tick(tick)))
                    place += 1
                case _:
                    some = list(takewhile(lambda i: isinstance(i, v1.Finding), self.inputs[place : place + self.batch]))
                    self._publish(list(role.process([record(f, place + n) for n, f in enumerate(some) if isinstance(f, v1.Finding)])))
                    place += len(some)
            done += 1
            if done % self.commit_every == 0:
                self.committed = place
        # a life long enough for a signal to be lost: restored episodes are spared for a while
        for seconds in (5000, 9000):
            self._publish(list(role.tick(Tick(at(seconds)))))
        self.committed = place

    def _publish(self, emitted: list[Emitted]) -> None:
        for one in emitted:
            if isinstance(one, Barrier):
                continue
            assert isinstance(one, Out)
            if self._left == 0:
                raise Died
            self._left -= 1
            log = self.logs[one.topic, 0]
            log.append(Record(one.topic, 0, len(log), one.key, one.value, one.headers, at(1000)))


def story(*entities: str) -> list[Input]:
    """Two episodes per entity, one after a hold and one resolved by lost signal, and a pending that comes to nothing."""
    found: list[Input] = []
    for n, entity in enumerate(entities):
        found += [
            finding(n, entity=entity, hold=10),
            finding(n + 3, False, entity=entity),
            finding(n + 20, entity=entity, hold=10, clear=5),
            finding(n + 32, entity=entity, hold=10, clear=5),
            finding(n + 40, False, entity=entity, hold=10, clear=5),
            finding(n + 60, entity=entity),
        ]
    found.sort(key=lambda f: f.observed_at_ns if isinstance(f, v1.Finding) else f.at_ns)
    return [*found, Tick(at(200)), Tick(at(400))]


@pytest.mark.parametrize("batch", [1, 3, 50])
@pytest.mark.parametrize("commit_every", [1, 4, 1000], ids=["commits at once", "commits late", "never commits"])
def test_killed_after_every_single_message(batch: int, commit_every: int) -> None:
    inputs = story("device/a", "device/b")
    whole = World(inputs, [], batch).live()
    assert len(whole) == 8
    messages = 60
    for cut in range(messages):
        world = World(inputs, [cut], batch, commit_every=commit_every)
        assert sorted(world.live()) == sorted(whole), f"killed after {cut} messages"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda t, a, h, c, e: finding(t, a, hold=h, clear=c, entity=e),
            st.integers(0, 200),
            st.booleans(),
            st.sampled_from([0, 10]),
            st.sampled_from([0, 10]),
            st.sampled_from(["device/a", "device/b"]),
        ),
        max_size=12,
        unique_by=lambda f: (f.entity, f.observed_at_ns),  # a detector says one thing of an instant
    ),
    st.lists(st.integers(0, 8), max_size=4),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_killed_again_and_again(findings: list[v1.Finding], lives: list[int], batch: int, commit_every: int) -> None:
    inputs: list[Input] = [*sorted(findings, key=lambda f: f.observed_at_ns), Tick(at(1000)), Tick(at(2000))]
    whole = World(inputs, [], batch).live()
    world = World(inputs, lives, batch, commit_every=commit_every)
    lived = world.live()
    assert sorted(lived) == sorted(whole)
    assert len(set(lived)) == len(lived)


def test_killed_between_the_end_of_one_episode_and_the_begin_of_the_next_at_the_same_instant() -> None:
    inputs: list[Input] = [finding(0, clear=10), finding(1, False), finding(11), Tick(at(1000)), Tick(at(2000))]
    whole = World(inputs, [], 1).live()
    assert len(whole) == 4
    for cut in range(12):
        assert sorted(World(inputs, [cut], 1).live()) == sorted(whole), f"killed after {cut} messages"


def test_a_transition_that_is_sent_again_is_the_same_byte_for_byte() -> None:
    inputs = story("device/a")
    once = World(inputs, [], 1)
    once.live()
    again = World(inputs, [3], 1)
    again.live()
    assert [a.SerializeToString(deterministic=True) for a in again.alerts()] == [
        a.SerializeToString(deterministic=True) for a in once.alerts()
    ]
