"""The bus a one-off verb talks to: as set, else the one of a running `xpulse up` on this machine; checked, so that it fails in a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpulse.bus.watchdog import reachable
from xpulse.errors import ProblemFound
from xpulse.local.runfiles import read_bus

if TYPE_CHECKING:
    from xpulse.bus.settings import Bus
    from xpulse.settings import Settings


def reachable_bus(settings: Settings) -> Bus:
    """Raises ProblemFound where no broker accepts a connection."""
    bus = settings.bus
    if "brokers" not in bus.model_fields_set and (local := read_bus(settings.state())):
        bus = bus.model_copy(update={"brokers": local, "embedded": True})
    if not reachable(bus.brokers):
        raise ProblemFound(f"no broker accepts connections at {bus.brokers}; start one with `xpulse up`, or set bus.brokers")
    return bus
