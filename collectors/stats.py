"""What the agent knows of itself: a plain snapshot per plugin that the shell renders as metrics and health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["starting", "reading", "unavailable", "restarting", "skipped", "maintenance"]


@dataclass(frozen=True, slots=True)
class PluginStats:
    """One plugin since the agent started. Durations are seconds, `last_success_ns` is ns UTC (0: never)."""

    name: str
    state: State
    reason: str
    """Why it is not reading; empty while it reads."""
    devices: int
    reads: int
    read_seconds: float
    """Sum over all reads."""
    last_read_seconds: float
    last_success_ns: int
    ticks_skipped: int
    """Ticks that passed while a read took longer than the interval."""
    restarts: int
    rejects: Mapping[tuple[str, str], int]
    """Values turned into absences, by (metric, reason)."""
    dropped: Mapping[str, int]
    """Messages not published, by reason: bus_full, too_large; samples and events of devices that another plugin speaks for: covered."""


@dataclass(frozen=True, slots=True)
class AgentStats:
    plugins: tuple[PluginStats, ...]


@dataclass(slots=True)
class Tally:
    """The same, while it is being counted."""

    name: str
    state: State = "starting"
    reason: str = ""
    devices: int = 0
    reads: int = 0
    read_seconds: float = 0.0
    last_read_seconds: float = 0.0
    last_success_ns: int = 0
    ticks_skipped: int = 0
    restarts: int = 0
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def snapshot(self) -> PluginStats:
        return PluginStats(
            self.name,
            self.state,
            self.reason,
            self.devices,
            self.reads,
            self.read_seconds,
            self.last_read_seconds,
            self.last_success_ns,
            self.ticks_skipped,
            self.restarts,
            dict(self.rejects),
            dict(self.dropped),
        )
