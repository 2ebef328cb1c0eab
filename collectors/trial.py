"""Asks again about what hung, in a short process of its own: where it hangs once more, nobody else misses a reading for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from collectors.child import Child
from collectors.patience import Patience

Outcome = Literal["well", "failed", "hangs"]


class Trial:
    """One process, which reads everything that is not in the order's `avoid` once, tells nobody, and ends."""

    def __init__(self, order: Mapping[str, Any], hang_seconds: float, at: float) -> None:
        """Starts it. Raises OSError where the host has no room for a process."""
        self.child = Child({**order, "trial": True, "state_dir": ""})
        self._patience = Patience(hang_seconds, at)

    def stood_still(self, seconds: float, at: float) -> None:
        """The agent did not run for so long."""
        self._patience.stood_still(seconds, at)

    def outcome(self, at: float) -> Outcome | None:
        """None while it is not known. After "hangs" its process is to be ended."""
        if self.child.gone():
            return "well" if self.child.ended_well() else "failed"
        return "hangs" if self._patience.over(self.child.place(), at) is not None else None
