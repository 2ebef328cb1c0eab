"""Hears NVML's event set: registers the cards that answer, empties it each tick, and begins anew when it breaks.

The set is polled without waiting rather than waited on in a thread: the driver queues events meanwhile, a poll costs one quick call, and
no second thread sits in the driver when a card is reset or the process is to let go of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from collectors.nvidia.processes.calls import Session
from collectors.nvidia.reply import Failed
from collectors.nvidia.watch.calls import TIMEOUT, EventCalls, address
from collectors.nvidia.watch.event import Watched, Where, event
from collectors.nvidia.watch.meaning import WANTED, Counted, Happened
from collectors.nvidia.watch.said import Said
from schemas.telemetry import v1

MOST_AT_ONCE: Final = 512
"""Events taken in one tick; what is left waits in the driver for the next."""

_FIRST_WAIT_SECONDS: Final = 1.0
_LONGEST_WAIT_SECONDS: Final = 300.0
_HEALTHY_SECONDS: Final = 60.0
_NOT_HERE: Final = (3, 13)


class Listener:
    """Holds at most one event set. `close` before the session ends; a set of an earlier session is void."""

    def __init__(self, session: Session, where: Where) -> None:
        self._calls, self._where = EventCalls(session), where
        self._counted = Counted(where)
        self._set: Any = None
        self._cards: dict[int, Watched] = {}
        self._deaf: set[str] = set()
        self._said = Said()
        self._wait_seconds = _FIRST_WAIT_SECONDS
        self._begin_at = 0.0
        self._begun_at = 0.0
        self._never = False

    def hear(self, cards: Sequence[Watched], at: float, now_ns: int, rejects: Counter[tuple[str, str]]) -> list[v1.DeviceEvent]:
        """Everything since the last call. `at` is the monotonic clock in seconds, `now_ns` ns UTC; lost cards have no handle."""
        events: list[v1.DeviceEvent] = []
        self._register(cards, at, rejects)
        if self._set is None:
            return events
        happened, broken = self._drain()
        events += self._counted.step(happened, now_ns)
        if broken is None:
            if at - self._begun_at >= _HEALTHY_SECONDS:
                self._wait_seconds = _FIRST_WAIT_SECONDS
                self._said.over("broken")
            return events
        rejects["events", f"nvml_{broken.code}"] += 1
        self._break(at)
        if self._said.first("broken"):
            text = f"NVML's event set broke (NVML {broken.code}) and is made anew; events in between are in the kernel log only"
            events.append(event(self._where, "vendor_log", now_ns, text, "info"))
        return events

    def close(self) -> None:
        """Give the set back; `hear` makes another. What still was in it is left to the kernel log."""
        if self._set is not None:
            self._calls.free(self._set)
        self._set = None
        self._cards, self._deaf = {}, set()
        self._never = False

    def _drain(self) -> tuple[list[Happened], Failed | None]:
        happened: list[Happened] = []
        for _ in range(MOST_AT_ONCE):
            answer = self._calls.next(self._set)
            if isinstance(answer, Failed):
                return happened, None if answer.code == TIMEOUT else answer
            card = self._cards.get(answer.handle)
            happened.append(Happened(card, answer.type, answer.data, answer.gpu_instance, answer.compute_instance))
        return happened, None

    def _register(self, cards: Sequence[Watched], at: float, rejects: Counter[tuple[str, str]]) -> None:
        """A set for the cards that answer; a card that came later joins it."""
        if self._never or at < self._begin_at:
            return
        heard = {card.uid for card in self._cards.values()} | self._deaf
        new = [card for card in cards if card.handle is not None and card.uid not in heard]
        if not new:
            return
        if self._set is None:
            made = self._calls.create()
            if isinstance(made, Failed):
                rejects["events", f"nvml_{made.code}"] += 1
                self._never = made.code in _NOT_HERE
                self._break(at)
                return
            self._set, self._begun_at = made, at
        for card in new:
            types = self._calls.supported(card.handle)
            refused = types if isinstance(types, Failed) else None
            if not isinstance(types, Failed) and types & WANTED:
                refused = self._calls.register(card.handle, types & WANTED, self._set)
                if refused is None:
                    self._cards[address(card.handle)] = card
                    continue
            self._deaf.add(card.uid)
            rejects["events", "not_supported" if refused is None else f"nvml_{refused.code}"] += 1

    def _break(self, at: float) -> None:
        never = self._never
        self.close()
        self._never = never
        self._begin_at = at + self._wait_seconds
        self._wait_seconds = min(2 * self._wait_seconds, _LONGEST_WAIT_SECONDS)
