"""The attribute role: samples and allocations in, who used how much of each device out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from schemas import topics
from schemas.codec import HEADERS, decode
from schemas.flow import DeadLetter, Emitted, Out, Partition, Reader, Record, Rejected, Tick
from schemas.telemetry import v1
from schemas.topics import MAX_VALUE_BYTES
from streams.operators.attribute import Arrived, Join, Joined, empty, forget_future, step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streams.settings import Attribute


class AttributeProcessor:
    """Joins samples with allocations.

    Allocations are read again from their compacted topic on assignment. Samples that were waiting are below the committed offset,
    so the shell rewinds and publishes what comes out again: rows are the same by node, source, device and time.
    `dropped` stays empty of samples: it counts those joined as unknown although somebody may have held the device.
    """

    role: Final = "attribute"
    inputs: Final = (topics.SAMPLES, topics.ALLOCATIONS)
    silent_rebuild: Final = False

    def __init__(self, limits: Join, *, rewind_seconds: float) -> None:
        self.rewind_seconds = rewind_seconds
        self._limits = limits
        self._state = empty(limits)
        self._restored_to: dict[int, int] = {}

    @classmethod
    def of(cls, settings: Attribute, *, rebuild_seconds: float) -> AttributeProcessor:
        """From the settings of the role and of all streams. A sample that still waits must lie within what is rewound."""
        limits = Join(round(settings.wait_seconds * 1e9), settings.node_buffer_samples, settings.total_buffer_samples)
        return cls(limits, rewind_seconds=max(rebuild_seconds, 5 * settings.wait_seconds))

    @property
    def dropped(self) -> Counter[str]:
        """Device samples joined as unknown, by reason."""
        return self._state.unknown

    @property
    def waiting_samples(self) -> int:
        """Device samples that wait for word of their owner."""
        return self._state.samples

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """Forget everything, then read the allocations of the owned partitions to their end.

        A malformed record is passed over: its dead letter is written when it is consumed as input.
        """
        fresh = empty(self._limits)
        fresh.unknown = self._state.unknown
        self._restored_to = {}
        for topic, partition in sorted(owned):
            if topic != topics.ALLOCATIONS:
                continue
            for record in reader.read(topic, partition):
                self._restored_to[partition] = record.offset
                try:
                    message = decode(record)
                except Rejected:
                    continue
                if isinstance(message, v1.AllocationSnapshot):
                    forget_future(fresh, message)
                    step(fresh, [message])
        self._state = fresh

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        emitted: list[Emitted] = []
        for record in records:
            try:
                message = decode(record)
            except Rejected as rejected:
                emitted.append(DeadLetter(record, rejected.reason))
                continue
            if isinstance(message, v1.SampleBatch):
                _, joined = step(self._state, [Arrived(message, record.timestamp_ns)])
            elif isinstance(message, v1.AllocationSnapshot):
                if record.offset > self._restored_to.get(record.partition, -1):
                    forget_future(self._state, message)
                _, joined = step(self._state, [message])
            else:  # a deleted node: what it held is over with its next snapshot, should it come back
                continue
            for batch in joined:
                emitted += _outs(batch)
        return emitted

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        _, joined = step(self._state, [tick])
        return [out for batch in joined for out in _outs(batch)]


def _outs(joined: Joined) -> list[Emitted]:
    """The message, or several with a part of the rows each where sharing made it larger than a message may be."""
    if len(joined.value) <= MAX_VALUE_BYTES:
        return [Out(topics.USAGE, joined.ref.key, joined.value, HEADERS)]
    whole = v1.AttributedBatch.FromString(joined.value)
    middle = len(whole.rows) // 2
    if middle == 0:
        raise Rejected(f"{topics.USAGE}: one row of {len(joined.value)} bytes, {MAX_VALUE_BYTES} is the most")
    first, second = v1.AttributedBatch(), v1.AttributedBatch()
    first.CopyFrom(whole)
    second.CopyFrom(whole)
    del first.rows[middle:]
    del second.rows[:middle]
    return [out for part in (first, second) for out in _outs(Joined(joined.ref, part.SerializeToString()))]
