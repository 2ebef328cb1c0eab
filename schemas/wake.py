"""Notices that this process was stopped for a while (SIGSTOP, a paused machine): what it knows of the world is then older than it looks."""

from __future__ import annotations

from typing import Final

GAP_NS: Final = 5_000_000_000
"""Ticks come once a second; a longer gap means that nobody was looking."""

SETTLE_NS: Final = 5_000_000_000
"""How long after a gap what arrives may still be old: answers that lay in a socket buffer look as if they had been given now."""


class Wake:
    """Asked with each tick. A fresh one, and one that is asked regularly, is awake."""

    def __init__(self) -> None:
        self._last_ns: int | None = None
        self._settled_ns = 0

    def awake(self, now_ns: int) -> bool:
        """False from a gap of more than GAP_NS on until SETTLE_NS after it: time must not be said to have passed meanwhile."""
        if self._last_ns is not None and now_ns - self._last_ns > GAP_NS:
            self._settled_ns = now_ns + SETTLE_NS
        self._last_ns = now_ns
        return now_ns >= self._settled_ns
