"""Notices an energy counter that stands still while the card draws power (ROCm/amdsmi#38: the same value until a reboot)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

_LEAST_SECONDS: Final = 30.0
_LEAST_JOULES: Final = 100.0
"""Drivers bring the counter up to date some times a second; so much energy in so long a time cannot be rounding."""


@dataclass(slots=True)
class _Card:
    energy_joules: float
    since: float
    last: float
    drawn_joules: float = 0.0
    frozen: bool = False


class Frozen:
    """Pure: the clock comes in."""

    def __init__(self) -> None:
        self._cards: dict[str, _Card] = {}

    def step(self, uid: str, energy_joules: float | None, power_watts: float | None, at: float) -> Literal["frozen", "moves"] | None:
        """One reading at `at` (monotonic seconds); says once that the counter stands still, and once that it moves again."""
        card = self._cards.get(uid)
        if energy_joules is None or power_watts is None:
            if card is not None and not card.frozen:
                del self._cards[uid]  # what it drew meanwhile is not known
            return None
        if card is None or energy_joules != card.energy_joules:
            self._cards[uid] = _Card(energy_joules, at, at)
            return "moves" if card is not None and card.frozen else None
        card.drawn_joules += power_watts * (at - card.last)
        card.last = at
        if card.frozen or at - card.since < _LEAST_SECONDS or card.drawn_joules < _LEAST_JOULES:
            return None
        card.frozen = True
        return "frozen"

    def forget(self, uids: frozenset[str]) -> None:
        """Keep only these cards."""
        self._cards = {uid: card for uid, card in self._cards.items() if uid in uids}
