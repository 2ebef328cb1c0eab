"""One pool for several askers: each gets its own results, by a mark in the label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecasting.pool import Chunk, Labelled

if TYPE_CHECKING:
    from forecasting.pool import Pool


class Shared:
    """Splits `pool` into `parts` pools."""

    def __init__(self, pool: Pool, parts: int) -> None:
        self._pool = pool
        self._boxes: list[list[Labelled]] = [[] for _ in range(parts)]

    def part(self, number: int) -> Part:
        return Part(self, number)

    def submit(self, chunk: Chunk, number: int) -> None:
        parts = len(self._boxes)
        self._pool.submit(Chunk(tuple((label * parts + number, job) for label, job in chunk.items), chunk.horizon, chunk.paths))

    def poll(self, number: int) -> list[Labelled]:
        """What is finished for one part; what is for others waits for them."""
        parts = len(self._boxes)
        for label, result, _ in self._pool.poll():
            self._boxes[label % parts].append(Labelled(label // parts, result))
        found, self._boxes[number] = self._boxes[number], []
        return found

    def idle(self, number: int) -> bool:
        return not self._boxes[number] and self._pool.idle

    def close(self) -> None:
        self._pool.close()


class Part:
    """A Pool. Closing it closes the whole: its askers live and end together."""

    def __init__(self, shared: Shared, number: int) -> None:
        self._shared = shared
        self._number = number

    def submit(self, chunk: Chunk) -> None:
        self._shared.submit(chunk, self._number)

    def poll(self) -> list[Labelled]:
        return self._shared.poll(self._number)

    @property
    def idle(self) -> bool:
        return self._shared.idle(self._number)

    def close(self) -> None:
        self._shared.close()
