"""What a channel of the notifier is, and the two ways in which a delivery fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from schemas.telemetry import v1


class Later(Exception):
    """The receiver cannot take it now; try again after `retry_after_seconds`."""

    def __init__(self, retry_after_seconds: float, reason: str) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds
        self.reason = reason


class Refused(Exception):
    """The receiver will never take it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Channel(Protocol):
    """One receiver of notifications."""

    @property
    def name(self) -> str: ...

    def deliver(self, alert: v1.Alert, members: int = 1) -> None:
        """Return once the receiver has it; its incident has had `members` alerts so far. Raises Later or Refused."""
        ...
