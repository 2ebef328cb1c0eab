"""Puts the kernel's stamps on the system's clock: printk's runs free of NTP, and after months without a reboot it is minutes off.

Pure. Nothing says how far it is off, but a line that is read for the first time was written after the last look that took all there was,
and before now: what lies outside of that is moved by as much as it takes, and with it all that follow.
"""

from __future__ import annotations

from typing import Final

SLACK_US: Final = 5_000_000
"""journald hands lines on a little late, and looks take time: a line so far outside is no sign of a wrong clock."""


class Clock:
    """Times are microseconds of CLOCK_MONOTONIC. `off_us` is what has been found: add it to a stamp."""

    def __init__(self) -> None:
        self.off_us = 0
        self._now_us = 0
        self._looked_us: int | None = None

    def look(self, now_us: int) -> None:
        """A look at the log begins."""
        self._now_us = now_us

    def took_all(self) -> None:
        """The look that began last left nothing: what is read from now on is younger than its beginning."""
        self._looked_us = self._now_us

    def when(self, stamp_us: int) -> int:
        """When a line was written."""
        at_us = stamp_us + self.off_us
        if at_us > self._now_us + SLACK_US:
            self.off_us += self._now_us - at_us
        elif self._looked_us is not None and at_us < self._looked_us - SLACK_US:
            self.off_us += self._looked_us - at_us
        return stamp_us + self.off_us
