"""How long a plugin's process may show no sign of life: a word, or going on to the next device, is one."""

from __future__ import annotations

from typing import Final

from collectors.whereabouts import Place

START_SECONDS: Final = 60.0
"""Up to its first answer: interpreter and imports on a loaded host are no driver that hangs, nor is a driver that wakes eight cards
which nobody holds open (no persistence mode), which takes it seconds for each."""


class Patience:
    """With one process. Times are the monotonic clock in seconds."""

    def __init__(self, hang_seconds: float, at: float) -> None:
        self._hang_seconds, self._sign_at = hang_seconds, at
        self._answered = False
        self._place: Place | None = None

    def word(self, at: float, *, answers: bool = True) -> None:
        """It said something; `answers` is false for what it says before its source has answered anything."""
        self._sign_at = at
        self._answered |= answers

    def stood_still(self, seconds: float, at: float) -> None:
        """We did not run for so long (a stopped process, a paused machine): what was said meanwhile may not be heard yet."""
        self._sign_at = min(self._sign_at + seconds, at)

    def over(self, place: Place | None, at: float) -> float | None:
        """The limit in seconds where it is over, None where it is not. `place` is what the process asks about now."""
        if place != self._place:
            self._place, self._sign_at = place, at
        limit = self._hang_seconds if self._answered or place is not None else max(START_SECONDS, self._hang_seconds)
        return limit if at - self._sign_at >= limit else None
