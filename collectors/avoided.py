"""What a plugin's process hung at, and when it is tried again: after a minute, then twice as late each time, half an hour at last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from collectors.whereabouts import Place

FIRST_SECONDS: Final = 60.0
MOST_SECONDS: Final = 1800.0
"""Each try costs all devices of the plugin `hang_seconds` when it fails."""


@dataclass(slots=True)
class _Left:
    uid: str
    wait_seconds: float
    until: float
    trying: bool = False


@dataclass(slots=True)
class Avoided:
    """Times are the monotonic clock in seconds."""

    _left: dict[str, _Left] = field(default_factory=dict)

    def add(self, place: Place, at: float) -> float:
        """The process hung there; seconds until it is tried again."""
        known = self._left.get(place.key)
        wait = FIRST_SECONDS if known is None else min(MOST_SECONDS, 2 * known.wait_seconds)
        self._left[place.key] = _Left(place.uid or (known.uid if known else ""), wait, at + wait)
        return wait

    def now(self, at: float) -> dict[str, str]:
        """What the next process is to leave out, by key: the uids. What is due is not among it; how long it waited stays known."""
        return {key: left.uid for key, left in self._left.items() if not left.trying and at < left.until}

    def due(self, at: float) -> bool:
        """Whether something left out is to be tried again; each once, by the next process."""
        found = [left for left in self._left.values() if not left.trying and left.until <= at]
        for left in found:
            left.trying = True
        # What has gone well for long is forgotten: its next hang is a first one.
        self._left = {key: left for key, left in self._left.items() if not left.trying or at - left.until < 2 * MOST_SECONDS}
        return bool(found)
