"""Where a role stands in each partition it owns: what was read, what is done, what the broker has, and where to begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition

from schemas.flow import Partition
from schemas.status import LostRange
from xpulse.bus.reader import ASK_SECONDS

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from xpulse.bus.reader import BusReader
    from xpulse.bus.settings import Bus

_NS_PER_MS: Final = 1_000_000


@dataclass(slots=True)
class Place:
    """One owned partition. Offsets name the *next* record; records below `rebuild_until` were committed before and only rebuild state."""

    at: Partition
    wire: str
    next: int
    done: int
    committed: int | None
    rebuild_until: int
    skip_before_ns: int = 0
    high: int | None = None
    high_at_ns: int = 0
    watermark_ns: int | None = None
    partitions: int | None = None
    keys: set[bytes] = field(default_factory=set)

    @property
    def lag(self) -> int | None:
        """Records still to read; None where the broker has not told lately."""
        return None if self.high is None else max(0, self.high - self.next)

    @property
    def rebuilding(self) -> bool:
        return self.next < self.rebuild_until

    @property
    def dirty(self) -> bool:
        """Whether there is something to commit; a first position counts, so that it is never lost silently."""
        return self.done >= self.rebuild_until and self.done != self.committed

    def position(self) -> TopicPartition:
        return TopicPartition(self.wire, self.at.partition, self.next)

    def to_commit(self) -> TopicPartition:
        return TopicPartition(self.wire, self.at.partition, self.done)


def find_places(
    consumer: Consumer, bus: Bus, reader: BusReader, owned: Sequence[Partition], *, rewind_seconds: float, now_ns: int
) -> tuple[list[Place], list[LostRange]]:
    """Where to begin in each partition, and what a commit names that the broker no longer has.

    Without a commit: at the lowest offset. With one: there, less `rewind_seconds` before the first record that is not done yet (before
    `now_ns` where all is done). A commit beyond the end (the topic was made anew) counts as lost from the end on; it begins at the lowest.
    """
    asked = [TopicPartition(bus.wire(p.topic), p.partition) for p in owned]
    commits = reader.ask(lambda: consumer.committed(asked, timeout=ASK_SECONDS))
    places: list[Place] = []
    lost: list[LostRange] = []
    for partition, answer in zip(owned, commits, strict=True):
        if answer.error is not None:
            raise RuntimeError(f"{bus.wire(partition.topic)}/{partition.partition}: {answer.error.str()}")
        low, high = reader.bounds(partition.topic, partition.partition)
        committed = answer.offset if answer.offset >= 0 else None
        start = low if committed is None else committed
        if committed is not None and committed < low:
            lost.append(LostRange(partition.topic, partition.partition, committed, low - 1))
            start = low
        elif committed is not None and committed > high:
            lost.append(LostRange(partition.topic, partition.partition, high, committed - 1))
            start = low
        place = Place(partition, bus.wire(partition.topic), start, start, committed, start, high=high, high_at_ns=now_ns)
        places.append(place)
    if rewind_seconds > 0:
        _rewind(consumer, bus, reader, places, round(rewind_seconds * 1e9), now_ns)
    return places, lost


def _rewind(consumer: Consumer, bus: Bus, reader: BusReader, places: Sequence[Place], rewind_ns: int, now_ns: int) -> None:
    behind = [place for place in places if place.committed is not None]
    waiting = {place.at: place.next for place in behind if place.lag}
    first_ns = reader.timestamps(waiting)
    since_ns = {place.at: min(first_ns.get(place.at, now_ns), now_ns) - rewind_ns for place in behind}
    if bus.embedded:  # it has no index by time (streams.md §9): read all it has and skip what is too old
        for place in behind:
            place.next = min(place.rebuild_until, reader.bounds(place.at.topic, place.at.partition)[0])
            place.skip_before_ns = since_ns[place.at]
        return
    if not behind:
        return
    asked = [TopicPartition(place.wire, place.at.partition, max(0, since_ns[place.at] // _NS_PER_MS)) for place in behind]
    found = reader.ask(lambda: consumer.offsets_for_times(asked, timeout=ASK_SECONDS))
    for place, answer in zip(behind, found, strict=True):
        if 0 <= answer.offset < place.rebuild_until:
            place.next = answer.offset
