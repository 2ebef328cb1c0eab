"""When the driver has to be let go: a lease file, a signal or a node label asks, and a maximum ends what nobody ends.

Pure: the shell says what it sees and what time it is. Any open client of the driver blocks a GPU reset or a MIG change, so while a
request stands the plugins' processes are gone; what they last said is under maintenance, never lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

DEFAULT_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "nvidia.com/mig.config.state": ("pending", "rebooting"),
    "nvidia.com/gpu-driver-upgrade-state": ("pod-deletion-required", "drain-required", "pod-restart-required"),
    "xpulse.io/maintenance": ("true", "requested"),
}
"""Labels that NVIDIA's MIG manager and GPU operator put on a node while they change it, and our own. States of the operator that only
announce an upgrade, or that follow it, are not among them: the driver is in place then."""


def asks(labels: Mapping[str, str], wanted: Mapping[str, tuple[str, ...]]) -> str:
    """The label that asks for maintenance as `name=value`; "" where none does."""
    for name, values in wanted.items():
        value = labels.get(name)
        if value is not None and value in values:
            return f"{name}={value}"
    return ""


@dataclass(slots=True)
class Maintenance:
    """Which requests stand. Times are seconds of the monotonic clock; `max_seconds` bounds each request from its first sight."""

    max_seconds: float
    _since: dict[str, float] = field(default_factory=dict)
    _overdue: set[str] = field(default_factory=set)

    def see(self, source: str, reason: str, at: float) -> None:
        """What `source` (file, signal, label) says now: a reason, or "" for no request. A request that changes its reason is a new one."""
        kept = {key for key in self._since if not key.startswith(f"{source}: ") or key == f"{source}: {reason}"}
        for key in set(self._since) - kept:
            del self._since[key]
            self._overdue.discard(key)
        if reason:
            self._since.setdefault(f"{source}: {reason}", at)

    def stands(self, at: float) -> str:
        """The oldest request in force, as text; "" where there is none."""
        for key, since in sorted(self._since.items(), key=lambda item: item[1]):
            if at - since < self.max_seconds:
                return key
        return ""

    def overdue(self, at: float) -> list[str]:
        """Requests that have just reached the maximum, each once: the plugins come back although nobody ended them."""
        found = [key for key, since in self._since.items() if at - since >= self.max_seconds and key not in self._overdue]
        self._overdue.update(found)
        return found
