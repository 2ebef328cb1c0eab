"""Stops a role that rejects most of what it reads: a schema mistake must not drain a topic into the dead letters."""

from __future__ import annotations

from collections import deque
from typing import Final

from xpulse.errors import GivenUp

WINDOW: Final = 1000
"""Records looked back at (ARCHITECTURE §10)."""


class TooManyRejected(GivenUp):
    """More than half of the last thousand records were rejected; nothing of the last batch was committed.

    The process ends with an exit code of its own: each new process looks at a thousand records before it stops, so one that is started
    again and again would drain the topic all the same.
    """


class RejectWindow:
    """Counts rejected records among the last thousand, batch by batch."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, int]] = deque()
        self._records = 0
        self._rejected = 0

    def note(self, role: str, records: int, rejected: int, reason: str) -> None:
        """One batch more. Raises TooManyRejected with the last reason."""
        self._batches.append((records, rejected))
        self._records += records
        self._rejected += rejected
        while self._batches and self._records - self._batches[0][0] >= WINDOW:
            old_records, old_rejected = self._batches.popleft()
            self._records -= old_records
            self._rejected -= old_rejected
        if self._records >= WINDOW and self._rejected * 2 > self._records:
            raise TooManyRejected(
                f"{role}: {self._rejected} of the last {self._records} records were rejected, the last one because: {reason}. "
                "Stopped before draining the topic into xpulse.dlq; bring producer and consumer to one release, then start it again"
            )
