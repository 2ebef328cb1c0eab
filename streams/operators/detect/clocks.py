"""How far a node's clock is from the broker's. Findings are weighed against the broker's time: by a node's wrong clock one would have
expired when it arrives, or would stand for as long as the clock is ahead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

TOLERANCE_NS: Final = 5_000_000_000
"""A smaller difference is left alone: most of it is the way to the broker."""

BATCHES: Final = 30
"""The last 30 to 60 batches are looked at. One that waited in the agent's queue says nothing of the clock: the quickest of them counts."""

_STEP_NS: Final = 1_000_000_000
_NONE: Final = 2**63


@dataclass(slots=True)
class _Behind:
    """Least broker's time of arrival less node's time of sending, ns: of the last whole span of batches, and of the one that goes on."""

    last_ns: int = _NONE
    least_ns: int = _NONE
    batches: int = 0

    def whole_seconds_ns(self) -> int:
        """By how much the node's times are moved: whole seconds, so that an event that is read again has the same time."""
        behind_ns = min(self.last_ns, self.least_ns)
        return 0 if abs(behind_ns) < TOLERANCE_NS else round(behind_ns / _STEP_NS) * _STEP_NS


@dataclass(slots=True)
class Clocks:
    """By (cluster, node); a node that never said when it sent is believed."""

    _nodes: dict[tuple[str, str], _Behind] = field(default_factory=dict)

    def sent(self, cluster: str, node: str, sent_at_ns: int, arrived_at_ns: int) -> None:
        """Take in one batch; one without either time says nothing."""
        if not sent_at_ns or not arrived_at_ns:
            return
        known = self._nodes.get((cluster, node))
        if known is None:
            known = self._nodes[cluster, node] = _Behind()
        if known.batches == BATCHES:
            known.last_ns, known.least_ns, known.batches = known.least_ns, _NONE, 0
        known.batches += 1
        known.least_ns = min(known.least_ns, arrived_at_ns - sent_at_ns)

    def corrected(self, cluster: str, node: str, at_ns: int) -> int:
        """A time by the node's clock in the broker's; as it is where the two agree."""
        known = self._nodes.get((cluster, node))
        return at_ns if known is None else max(1, at_ns + known.whole_seconds_ns())

    def wrong(self) -> int:
        """Nodes whose times are corrected."""
        return sum(known.whole_seconds_ns() != 0 for known in self._nodes.values())

    def forget(self, cluster: str, node: str) -> None:
        self._nodes.pop((cluster, node), None)
