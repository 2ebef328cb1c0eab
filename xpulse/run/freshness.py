"""Whether the agent hears its devices now: readiness from what each plugin did last, with the names of those that are stale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collectors.stats import PluginStats


def readiness(plugins: Sequence[PluginStats], now_ns: int, limit_ns: int) -> tuple[bool, str]:
    """(ready, what is not as it should be). Times are ns UTC; a success older than `limit_ns` is stale.

    Ready: some plugin is fresh, and none that ever read has become stale. One that never read (no such driver here) does no harm beside
    another that has devices; one that let its driver go on request does what it was asked.
    """
    fresh = [p for p in plugins if p.state == "reading" and now_ns - p.last_success_ns <= limit_ns]
    resting = [p for p in plugins if p.state == "maintenance"]
    stale = [p for p in plugins if p.last_success_ns and p not in fresh and p.state not in ("maintenance", "skipped")]
    never = [p for p in plugins if not p.last_success_ns and p.state not in ("maintenance", "skipped")]
    deaf = not resting and bool(never) and not any(p.devices for p in fresh)
    words = [f"{p.name}: last success {(now_ns - p.last_success_ns) / 1e9:.0f} s ago ({p.reason or p.state})" for p in stale]
    words += [f"{p.name}: {p.reason or p.state}" for p in plugins if p not in stale and p.state != "reading"]
    return bool(fresh or resting) and not stale and not deaf, "; ".join(words)
