"""What a plugin's process hung at, and when it is tried again: after a minute, then twice as late each time, half an hour at last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from collectors.whereabouts import Place

FIRST_SECONDS: Final = 60.0
MOST_SECONDS: Final = 1800.0
"""A try asks the driver for what it hung at, and a process that is stuck in it may outlive its end."""


@dataclass(slots=True)
class _Left:
    uid: str
    wait_seconds: float
    until: float
    well_since: float | None = None
    """When it was found to answer again; it is left out no more, and forgotten where it goes well for long."""


@dataclass(slots=True)
class Avoided:
    """Times are the monotonic clock in seconds."""

    _left: dict[str, _Left] = field(default_factory=dict)

    def add(self, place: Place, at: float) -> float:
        """The process hung there; seconds until it is tried again."""
        self._forget(at)
        known = self._left.get(place.key)
        wait = FIRST_SECONDS if known is None else min(MOST_SECONDS, 2 * known.wait_seconds)
        self._left[place.key] = _Left(place.uid or (known.uid if known else ""), wait, at + wait)
        return wait

    def now(self) -> dict[str, str]:
        """What the plugin is to leave out, by key: the uids."""
        return {key: left.uid for key, left in self._left.items() if left.well_since is None}

    def due(self, at: float) -> frozenset[str]:
        """Keys that are to be tried again."""
        return frozenset(key for key, left in self._left.items() if left.well_since is None and left.until <= at)

    def again(self, keys: Iterable[str], at: float) -> float:
        """The try did not go well: the least of the new waits in seconds."""
        return min(self.add(Place(key), at) for key in keys)

    def well(self, keys: Iterable[str], at: float) -> None:
        """The try went well; what else is left out is tried at once, as it may have had the same cause."""
        for key in keys:
            self._left[key].well_since = at
        for left in self._left.values():
            left.until = min(left.until, at)

    def all_well(self, at: float) -> None:
        """Somebody worked on the devices: everything is read again at once. What hangs all the same waits longer than before."""
        self.well([key for key, left in self._left.items() if left.well_since is None], at)

    def _forget(self, at: float) -> None:
        long_well = [key for key, left in self._left.items() if left.well_since is not None and at - left.well_since >= 2 * MOST_SECONDS]
        for key in long_well:
            del self._left[key]
