"""Follows the bus beside the roles, outside any group, and keeps the tally the live view and the summary are made of."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from xpulse.bus.follow import Follower
from xpulse.local.tally import FOLLOWED, Tally

if TYPE_CHECKING:
    from xpulse.bus.settings import Bus

log = logging.getLogger(__name__)


class Watch:
    """A thread that feeds a Tally from the topics' present end on. Hold `lock` while reading `tally`."""

    def __init__(self, bus: Bus, tally: Tally) -> None:
        self.tally = tally
        self.lock = threading.Lock()
        self._follower = Follower(bus, FOLLOWED)
        self._stop = threading.Event()
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            records = self._follower.poll(0.25)
            if records:
                self._idle.clear()
                with self.lock:
                    self.tally.add(records)
            else:
                self._idle.set()

    def drain(self, seconds: float) -> None:
        """Wait until nothing more comes, at most this long."""
        self._idle.clear()
        self._idle.wait(seconds)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2.0)
        self._follower.close()
