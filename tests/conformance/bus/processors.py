"""Small processors for tests of the bus: what they saw and what they were told is kept for the assertions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from schemas.flow import DeadLetter, Emitted, Out, Partition, Reader, Record, Tick
from schemas.topics import SAMPLES, USAGE


@dataclass
class Relay:
    """Sends every record of `inputs` on to xpulse.usage; a value that begins with `bad` is a dead letter."""

    role: str = "attribute"
    inputs: tuple[str, ...] = (SAMPLES,)
    rewind_seconds: float = 0.0
    silent_rebuild: bool = False
    seen: list[Record] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    owned: list[frozenset[Partition]] = field(default_factory=list)
    before: Callable[[Sequence[Record]], None] = lambda records: None
    restoring: Callable[[Reader], None] = lambda reader: None

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        self.owned.append(owned)
        self.restoring(reader)

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        self.before(records)
        self.seen += records
        return [self._emit(record) for record in records]

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        self.ticks.append(tick.at_ns)
        return []

    def _emit(self, record: Record) -> Emitted:
        if (record.value or b"").startswith(b"bad"):
            return DeadLetter(record, "begins with bad")
        return Out(USAGE, record.key or b"", record.value, record.headers)
