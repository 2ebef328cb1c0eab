"""The store writer's role: reads every topic that is kept, writes points, and sends what no store will take to the dead letters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from schemas import topics
from schemas.codec import decode
from schemas.flow import Busy, DeadLetter, Emitted, Rejected
from schemas.telemetry import v1
from sinks.device import DevicePoints, Samples
from sinks.identities import Identities
from sinks.points import checked_time, points_of
from sinks.table import Points
from sinks.usage import UsagePoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.flow import Partition, Reader, Record, Tick
    from sinks.points import Point, PointWriter

INPUTS: Final = (
    topics.SAMPLES,
    topics.USAGE,
    topics.INFERENCE,
    topics.DEVICE_EVENTS,
    topics.CONTEXT_EVENTS,
    topics.ALLOCATION_CHANGES,
    topics.FINDINGS,
    topics.ALERTS,
    topics.FORECASTS,
)
IDENTITY_WAIT_SECONDS: Final = 1.0
MOST_RECORDS: Final = 2000
"""With 2,000 series each transaction of the embedded store touches pages of all of them, the more the fuller the file: after 300 ticks,
four ticks in one (and a larger WAL) take half the CPU and a third of the time a row (measured once)."""


class StoreProcessor:
    """A Processor over one PointWriter. `process` returns after the points are durable; the same batch again changes nothing.

    `identity_tries`: how often a batch with a device that inventory does not know is answered by Busy (sinks.identities says why).
    """

    def __init__(self, role: Literal["sqlite", "influxdb"], writer: PointWriter, *, identity_tries: int = 5) -> None:
        self._role = role
        self._writer = writer
        self._identities = Identities()
        self._devices = DevicePoints(self._identities)
        self._usage = UsagePoints()
        self._identity_tries = identity_tries
        self._tries = 0
        self._dropped: Counter[str] = Counter()

    @property
    def role(self) -> str:
        return self._role

    @property
    def inputs(self) -> tuple[str, ...]:
        return INPUTS

    @property
    def most_records(self) -> int:
        return MOST_RECORDS

    @property
    def rewind_seconds(self) -> float:
        return 0.0

    @property
    def silent_rebuild(self) -> bool:
        return False

    @property
    def dropped(self) -> Counter[str]:
        """Left out, by reason; `identity_unknown` counts devices whose points have the tags kind and model `unknown`, `state_unreadable`
        records of inventory that could not be read."""
        return self._dropped + self._writer.dropped + Counter({"state_unreadable": self._identities.unreadable})

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """Read who the devices are; every partition of inventory, as its key is not the samples' key."""
        self._tries = 0
        self._identities.restore(reader)

    def process(self, records: Sequence[Record]) -> list[Emitted]:
        letters: list[Emitted] = []
        batches: list[tuple[Record, v1.SampleBatch]] = []
        points: list[Point] = []
        made_from: list[Record] = []
        for record in records:
            try:
                message = decode(record)
                if isinstance(message, v1.SampleBatch):
                    checked_time(message.taken_at_ns)
                    batches.append((record, message))
                    continue
                if isinstance(message, v1.AttributedBatch):
                    made = self._usage.points(message)
                else:
                    made = points_of(message, record.offset) if message is not None else []
            except Rejected as rejected:
                letters.append(DeadLetter(record, rejected.reason))
                continue
            points += made
            made_from += [record] * len(made)
        samples = Samples([(batch, record.value or b"") for record, batch in batches])
        self._know_devices(samples)
        of_devices, batch_of = self._devices.points(samples)
        points += of_devices.single
        made_from += [batches[position][0] for position in batch_of]
        letters += self._write(Points(points, of_devices.tables), made_from)
        self._tries = 0
        return letters

    def tick(self, tick: Tick) -> list[Emitted]:
        """Nothing depends on time alone."""
        return []

    def close(self) -> None:
        """Close the writer."""
        self._writer.close()

    def _know_devices(self, samples: Samples) -> None:
        """Learn from every full sample first, so that a thin one before it in the batch is known too; Busy while one is unknown."""
        self._devices.learn(samples)
        if not self._devices.unknown(samples):
            return
        self._identities.read_again()
        unknown = self._devices.unknown(samples)
        if not unknown:
            return
        if self._tries < self._identity_tries:
            self._tries += 1
            some = ", ".join(sorted(device.uid for device in unknown)[:3])
            raise Busy(IDENTITY_WAIT_SECONDS, f"{len(unknown)} device(s) not in {topics.INVENTORY} yet ({some})")
        for device in unknown:
            self._identities.give_up(device)
        self._dropped["identity_unknown"] += len(unknown)

    def _write(self, points: Sequence[Point], made_from: Sequence[Record]) -> list[Emitted]:
        if not points:
            return []
        reasons: dict[int, list[str]] = {}
        refused = self._writer.write(points)
        for rejected in refused:
            reasons.setdefault(id(made_from[rejected.position]), []).append(rejected.reason)
        found = {id(record): record for record in made_from} if refused else {}
        return [DeadLetter(found[key], _one(texts)) for key, texts in reasons.items()]


def _one(reasons: Sequence[str]) -> str:
    distinct = sorted(set(reasons))
    return distinct[0] if len(distinct) == 1 else f"{distinct[0]} (and {len(reasons) - 1} more points of this record)"
