"""Whose turn it is in a tick where a card is slow: the quick ones first, the slow one after them and less often, so that it hides none.

Pure: times are seconds of a clock that only goes forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Change = Literal["slow", "quick"]

SLOW_SECONDS: Final = 0.25
"""For the dozen calls of a fast tick: 20 ms each, where a healthy driver takes microseconds."""

_REST: Final = 10
"""A slow card is read again after so many times what it took: the others lose a tenth of their ticks to it at most."""

_LONGEST_REST_SECONDS: Final = 60.0
_QUICK_ROUNDS: Final = 3
"""So many quick reads in a row end it, or a driver that is slow now and then would be news each time."""


@dataclass(slots=True)
class _Turn:
    read_at: float = float("-inf")
    next_at: float = float("-inf")
    slow: bool = False
    quick_rounds: int = 0


class Turns:
    """Of the cards of one node, by uid."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def order(self, uids: Iterable[str], at: float) -> list[str]:
        """Those to be read now, in this order. Where all are slow none rests, and who waited longest is first."""
        self._turns = {uid: self._turns.get(uid) or _Turn() for uid in uids}
        all_slow = all(turn.slow for turn in self._turns.values())
        now = {uid: turn for uid, turn in self._turns.items() if all_slow or not turn.slow or at >= turn.next_at}
        return sorted(now, key=lambda uid: (now[uid].slow, now[uid].read_at))

    def done(self, uid: str, at: float, seconds: float, *, limit_seconds: float = SLOW_SECONDS) -> Change | None:
        """A card was read at `at`, which took so long. Says when it becomes slow, and when it is quick again."""
        turn = self._turns[uid]
        turn.read_at = at
        if seconds > limit_seconds:
            turn.next_at = at + min(_REST * seconds, _LONGEST_REST_SECONDS)
            turn.quick_rounds = 0
            was, turn.slow = turn.slow, True
            return None if was else "slow"
        if not turn.slow:
            return None
        turn.next_at = at
        turn.quick_rounds += 1
        if turn.quick_rounds < _QUICK_ROUNDS:
            return None
        turn.slow = False
        return "quick"
