"""What each process did since it was last asked; zero only from a call that is known to tell it on this card.

Drivers before 550 have one call. On Blackwell it answers and names nobody, however busy the card is (Project-HAMi/HAMi-core#218); the newer
call does. So the newer one is asked first, and an empty answer of the older one says nothing before it has once named a process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from collectors.nvidia.processes.calls import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, ProcessCalls
from collectors.nvidia.processes.parse import USAGE, averaged
from collectors.nvidia.readings import reason
from collectors.nvidia.reply import NOT_SUPPORTED, Failed
from schemas.values import Absent, Reading, Reason

_NOT_HERE: Final = frozenset({INVALID_ARGUMENT, NOT_SUPPORTED, FUNCTION_NOT_FOUND, 25})
"""The card or the driver does not have the call: 25 is another version of its struct."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Ratios by process id; `others` is what holds for a process that has no sample."""

    by_pid: Mapping[int, Mapping[str, Reading]]
    others: Reading

    def of(self, pid: int) -> Mapping[str, Reading]:
        found = self.by_pid.get(pid)
        return dict.fromkeys(USAGE, self.others) if found is None else found


def unknown(why: Reason) -> Usage:
    return Usage({}, Absent(why))


@dataclass(slots=True)
class _Card:
    since_microseconds: int
    proven: bool | None = None
    """Which call has named a process here: the newer one, the older one, or none yet."""
    missing: set[bool] = field(default_factory=set)


class UsageReader:
    """Remembers per card when it was last asked and which call answers."""

    def __init__(self, calls: ProcessCalls, *, window_seconds: float) -> None:
        self._calls = calls
        self._window_microseconds = round(window_seconds * 1e6)
        self._cards: dict[str, _Card] = {}

    def read(self, uid: str, handle: Any, now_ns: int, rejects: Counter[tuple[str, str]]) -> Usage:
        """`now_ns` is ns UTC; the first answer looks one window back."""
        now = now_ns // 1000
        card = self._cards.get(uid)
        if card is None:
            card = self._cards[uid] = _Card(now - self._window_microseconds)
        elif card.since_microseconds > now:
            card.since_microseconds = now - self._window_microseconds  # the clock was set back
        newer_answered = False
        failed = Failed(NOT_SUPPORTED)
        for newer in (True, False) if card.proven is None else (card.proven,):
            if newer in card.missing:
                continue
            answer = self._calls.activity(handle, card.since_microseconds, newer=newer)
            if isinstance(answer, Failed):
                if answer.code not in _NOT_HERE:
                    return unknown(reason(answer.code))
                card.missing.add(newer)
                failed = answer
                continue
            by_pid = averaged(answer, card.since_microseconds, rejects)
            if by_pid:
                card.proven = newer
                card.since_microseconds = max(sample.at_microseconds for sample in answer)
                return Usage(by_pid, 0.0)
            newer_answered |= newer
        if newer_answered or (card.proven is not None and card.proven not in card.missing):
            return Usage({}, 0.0)
        return unknown(reason(failed.code) if len(card.missing) == 2 else "not_supported")

    def forget(self, uids: set[str]) -> None:
        """Keep only these cards."""
        self._cards = {uid: card for uid, card in self._cards.items() if uid in uids}
