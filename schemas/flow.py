"""What flows between an operator and the shell that runs it: records in, outs and dead letters back, ticks when time must pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

from schemas.telemetry import v1

Headers = tuple[tuple[str, bytes], ...]


class Record(NamedTuple):
    """A message as the bus gave it. `topic` is the unprefixed name; `timestamp_ns` is the broker's."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ns: int


@dataclass(frozen=True, slots=True)
class Out:
    """A message to publish. `value` None is a deletion on a compacted topic. `timestamp_ns` None leaves the time to the client."""

    topic: str
    key: bytes
    value: bytes | None
    headers: Headers = ()
    timestamp_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that will never be accepted; the shell writes it to xpulse.dlq."""

    record: Record
    reason: str


def defect_reason(error: BaseException) -> str:
    """The reason of a dead letter whose record was well formed as far as we know, and made the processor fail: a fault of ours."""
    return f"defect: {type(error).__name__}: {error}"


class Barrier:
    """Between two outs: everything before it is acknowledged by the broker before anything after it is sent."""


BARRIER: Final = Barrier()
Emitted = Out | DeadLetter | Barrier


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed up to `at_ns` (event time), although no item said so."""

    at_ns: int


class Busy(Exception):
    """Not now: the same batch again after `retry_after_seconds`. The shell pauses the partitions and keeps polling."""

    def __init__(self, retry_after_seconds: float, reason: str) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds
        self.reason = reason


class Rejected(Exception):
    """Never: this row will not be accepted however often it is sent."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Partition(NamedTuple):
    topic: str
    partition: int


class Reader(Protocol):
    """Reads a partition from its start (or from records at or after `since_ns`) to the end it has now, outside any group."""

    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]: ...

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has."""
        ...


class Processor(Protocol):
    """A role's logic as the two runners see it: no clock, no I/O of its own but a sink's durable write.

    `process` and `tick` may raise Busy (nothing was taken in; the same call again later). They never raise for a bad record: that
    is a DeadLetter among what they return; should `process` do so by a defect, the record becomes one, after a restore where others
    were in the batch. OSError and MemoryError are the machine's, and end the role. `restore` is called on every assignment, before the
    first record, with the partitions now owned (all input topics); it forgets what it no longer owns (all it knows where nothing is).
    `rewind_seconds` > 0 has the shell go back that far on assignment; with `silent_rebuild` what records below the committed offset
    produce is not published again.
    """

    @property
    def role(self) -> str: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def rewind_seconds(self) -> float: ...
    @property
    def silent_rebuild(self) -> bool: ...

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None: ...

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]: ...

    def tick(self, tick: Tick) -> Sequence[Emitted]: ...


@runtime_checkable
class TakesMany(Protocol):
    """A processor that is given more records at once than others where more are ready: a store's transaction costs less a point."""

    @property
    def most_records(self) -> int: ...


def tick_time(owned: Iterable[Partition], watermark_ns: Mapping[Partition, int], lag: Mapping[Partition, int], now_ns: int) -> int | None:
    """Event time that has certainly passed: the lowest over the owned partitions of the wall clock (lag 0) or the watermark (lag > 0).

    None where a partition with lag has said nothing yet, or nothing is owned.
    """
    lowest: int | None = None
    for partition in owned:
        if lag.get(partition, 1) == 0:
            at: int | None = now_ns
        else:
            at = watermark_ns.get(partition)
        if at is None:
            return None
        lowest = at if lowest is None else min(lowest, at)
    return lowest


ReadingEvent = v1.DeviceEvent | v1.ContextEvent | v1.AllocationSnapshot | v1.AllocationChange | v1.InferenceWindow | v1.InventoryRecord
"""What a collector may say besides samples; the publisher puts each on its topic."""

Role = Literal["agent", "attribute", "detect", "alert", "sqlite", "influxdb", "notify", "mirror", "forecast"]
