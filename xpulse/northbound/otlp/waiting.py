"""Requests that wait for the endpoint: packed, in order, bounded in bytes; the oldest goes where there is no room."""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Packed:
    """One request in gzip's format, and how many data points it holds."""

    body: bytes
    points: int

    @classmethod
    def of(cls, message: bytes, points: int) -> Packed:
        # Names and identities repeat in every point: the fastest level takes 19 of 20 bytes away.
        return cls(zlib.compress(message, level=1, wbits=31), points)

    def message(self) -> bytes:
        return zlib.decompress(self.body, wbits=31)


class Waiting:
    """First in, first out. `size_bytes` is what is held, never more than `limit_bytes` but for one request that is larger by itself."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._queue: deque[Packed] = deque()
        self.size_bytes = 0
        self.points = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, packed: Packed) -> int:
        """Take one in; returns how many points had to go for it."""
        lost = 0
        while self._queue and self.size_bytes + len(packed.body) > self._limit:
            lost += self.pop().points
        self._queue.append(packed)
        self.size_bytes += len(packed.body)
        self.points += packed.points
        return lost

    def head(self) -> Packed:
        return self._queue[0]

    def pop(self) -> Packed:
        gone = self._queue.popleft()
        self.size_bytes -= len(gone.body)
        self.points -= gone.points
        return gone
