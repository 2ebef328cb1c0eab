"""What the agent's publisher counts: what was acknowledged, what waits and where, what went over board and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class AgentTotals:
    """Messages taken by `offer`: acknowledged by the broker, failed for ever (by reason), or not yet answered."""

    acknowledged: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """too_large, refused, and the reasons of the spool (xpulse.northbound.spool.folder)."""
    unacknowledged: int = 0
    """In memory and in the spool."""
    unacknowledged_bytes: int = 0
    """In memory."""
    last_ack_ns: int = 0
    """Wall clock of the newest acknowledgement, ns UTC; 0 before the first."""
    silent_seconds: float = 0.0
    """For how long the bus has acknowledged nothing although something waits; 0 while it does."""
    silent_why: str = ""
    """What librdkafka said last, while the bus is silent."""
    stuck: dict[str, str] = field(default_factory=dict)
    """Topics that the broker does not take although it takes others, and why."""
    replayed: int = 0
    """Acknowledged messages that had been in the spool."""
    sent_twice: int = 0
    """Messages given to a bus that did not answer and then sent again: it may have both. Consumers know them by their sequence."""
    spool_limit_bytes: int = 0
    """0: there is no spool."""
    spool_bytes: int = 0
    spool_records: int = 0
    spool_oldest_seconds: float = 0.0
    """Age of the oldest message in the spool."""
    spool_full_seconds: float | None = None
    """Until the spool is full at the rate of late; None where it does not grow."""
    spool_dropped_bytes: Counter[str] = field(default_factory=Counter)
    spool_trouble: str = ""
    """Why there is no spool although there should be, or why the last write to it failed."""
