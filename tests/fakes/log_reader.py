"""A Reader over records in memory: partitions as lists, read from the start or from a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from schemas.flow import Record


class LogReader:
    """`logs[(topic, partition)]` are the records of a partition, oldest first; one that is not there is empty."""

    def __init__(self, logs: Mapping[tuple[str, int], Sequence[Record]]) -> None:
        self.logs = logs

    def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
        for record in self.logs.get((topic, partition), ()):
            if since_ns is None or record.timestamp_ns >= since_ns:
                yield record

    def partitions(self, topic: str) -> int:
        return max((p + 1 for t, p in self.logs if t == topic), default=1)
