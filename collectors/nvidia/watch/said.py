"""Says a thing once for as long as it lasts."""

from __future__ import annotations

from collections.abc import Hashable


class Said:
    """Which conditions have been reported."""

    def __init__(self) -> None:
        self._said: set[Hashable] = set()

    def first(self, what: Hashable) -> bool:
        """True the first time, until `over`."""
        if what in self._said:
            return False
        self._said.add(what)
        return True

    def over(self, what: Hashable) -> bool:
        """The condition has ended; True where it had been reported."""
        if what not in self._said:
            return False
        self._said.discard(what)
        return True
