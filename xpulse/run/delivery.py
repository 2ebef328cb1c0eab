"""How the agent's messages get on, in words for people: what is in their way, and where they wait meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xpulse.bus.totals import AgentTotals


def delivery_trouble(totals: AgentTotals) -> str:
    """What keeps the agent's messages from the broker, and where they wait; "" where nothing does."""
    waits = _waits(totals)
    if totals.silent_seconds:
        why = f" ({totals.silent_why})" if totals.silent_why else ""
        return f"bus unreachable for {totals.silent_seconds:.0f} s{why}; {waits}"
    if totals.stuck:
        words = ", ".join(f"{topic} ({why or 'no answer'})" for topic, why in sorted(dict(totals.stuck).items()))
        return f"the broker does not take {words}; see: xpulse topics create; {waits}"
    return ""


def _waits(totals: AgentTotals) -> str:
    found = f"{totals.unacknowledged:,} messages wait in memory"
    if totals.spool_limit_bytes and totals.spool_records:
        size = f"{_size(totals.spool_bytes)} of {_size(totals.spool_limit_bytes)}{_full(totals.spool_full_seconds)}"
        found = f"{totals.spool_records:,} messages spooled ({size})"
    return "; ".join(filter(None, [found, totals.spool_trouble]))


def catching_up(totals: AgentTotals) -> str:
    """What is still to be sent of an outage that is over; "" where nothing is."""
    if not totals.spool_records:
        return ""
    return f"sending {totals.spool_records:,} messages from the spool, the oldest {totals.spool_oldest_seconds:.0f} s old"


def _full(seconds: float | None) -> str:
    """When the oldest messages begin to go over board."""
    match seconds:
        case None:
            return ""
        case _ if seconds <= 0:
            return ", full"
        case _ if seconds < 7200:
            return f", full in {max(1.0, seconds / 60):.0f} min"
        case _:
            return f", full in {seconds / 3600:.0f} h"


def _size(size_bytes: int) -> str:
    size = size_bytes / 2**20
    return f"{size:.1f} MiB" if size < 10 else f"{size:.0f} MiB"
