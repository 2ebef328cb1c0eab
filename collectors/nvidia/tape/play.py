"""Answers the bindings from a tape instead of a library: tick by tick, each question with what the driver said to it then."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from collectors.nvidia.tape.calls import Said, key_of, place_of, put, raw

FUNCTION_NOT_FOUND: Final = 13
_SUCCESS: Final = 0
_ALWAYS: Final = frozenset(("nvmlInitWithFlags", "nvmlInit_v2", "nvmlShutdown", "nvmlGpmSampleFree", "nvmlEventSetFree"))
"""Calls that only open and close: a player has nothing to fail at."""


class Player:
    """`wrap` is given to collectors.nvidia.source.Source; `tick` goes on to the next tick's words.

    A question that was not asked in this tick gets the answer that it got last; one that was never asked is answered as an older
    driver would (function not found) and counted in `unknown`: this release asks more than the one that made the tape.
    """

    def __init__(self, missing: Iterable[str], refuse: Callable[[str], Exception]) -> None:
        self._missing, self._refuse = frozenset(missing), refuse
        self._now: dict[str, deque[Said]] = {}
        self._last: dict[str, Said] = {}
        self.unknown: dict[str, int] = {}

    def tick(self, said: Sequence[Said]) -> None:
        for left in self._now.values():
            if left:
                self._last[left[-1].key] = left[-1]
        self._now = {}
        for one in said:
            self._now.setdefault(one.key, deque()).append(one)

    def wrap(self, symbol: str, find: Callable[[str], Any]) -> Any:
        """A function that answers from the tape; raises what the bindings raise for a symbol that the library lacked."""
        if symbol in self._missing:
            raise self._refuse(symbol)
        return _Answering(symbol, self)

    def answer(self, symbol: str, arguments: Sequence[Any]) -> int:
        places = [place for place in map(place_of, arguments) if place is not None]
        key = key_of(symbol, arguments, [raw(place) for place in places])
        said = self._find(key)
        if said is None:
            if symbol in _ALWAYS:
                return _SUCCESS
            self.unknown[symbol] = self.unknown.get(symbol, 0) + 1
            return FUNCTION_NOT_FOUND
        for place, data in zip(places, said.outs, strict=False):
            put(place, data)
        return said.code

    def _find(self, key: str) -> Said | None:
        left = self._now.get(key)
        if left:
            said = self._last[key] = left.popleft()
            return said
        return self._last.get(key)


class _Answering:
    def __init__(self, symbol: str, player: Player) -> None:
        self._symbol, self._player = symbol, player

    def __call__(self, *arguments: Any) -> int:
        return self._player.answer(self._symbol, arguments)
