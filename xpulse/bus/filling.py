"""When the spool will be full: only the agent can say, as the bus is away while it fills.

The rate is that of the last minutes, not of the whole outage: what a node says changes with what runs on it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

EVERY_SECONDS: Final = 5.0
"""Between two readings that are kept."""
WINDOW_SECONDS: Final = 300.0
"""What the rate is taken over."""
LEAST_SECONDS: Final = 30.0
"""Less than that says nothing yet: files grow in steps."""


class Filling:
    """Readings of the spool's size. `at` is a monotonic clock in seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def take(self, at: float, size_bytes: int, limit_bytes: int) -> float | None:
        """Seconds until `limit_bytes` at the rate of late, 0 where it is full; None where it does not grow or is not known for long enough.

        A spool that shrinks is being sent, or lost a segment: what came before says nothing of what follows.
        """
        if self._seen and size_bytes < self._seen[-1][1]:
            self._seen.clear()
        if not self._seen or at - self._seen[-1][0] >= EVERY_SECONDS:
            self._seen.append((at, size_bytes))
        while at - self._seen[0][0] > WINDOW_SECONDS:
            self._seen.popleft()
        left = limit_bytes - size_bytes
        if left <= 0:
            return 0.0
        began, first = self._seen[0]
        grown = size_bytes - first
        if at - began < LEAST_SECONDS or grown <= 0:
            return None
        return left * (at - began) / grown
