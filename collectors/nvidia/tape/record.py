"""Stands between the bindings and the library and writes down every call; the calls themselves go on unchanged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from collectors.nvidia.tape.calls import Said, key_of, place_of, raw


class Recorder:
    """`wrap` is given to collectors.nvidia.source.Source; `take` gives what was said since the last time.

    `missing` are the symbols that the library does not have.
    """

    def __init__(self) -> None:
        self._said: list[Said] = []
        self.missing: set[str] = set()

    def wrap(self, symbol: str, find: Callable[[str], Any]) -> Any:
        """The library's function of that name, listened to; raises what `find` raises."""
        try:
            function = find(symbol)
        except Exception:
            self.missing.add(symbol)
            raise
        return function if symbol == "nvmlErrorString" else _Heard(symbol, function, self._said)

    def take(self) -> list[Said]:
        said = self._said[:]
        self._said.clear()
        return said


class _Heard:
    def __init__(self, symbol: str, function: Any, said: list[Said]) -> None:
        self._symbol, self._function, self._said = symbol, function, said

    def __call__(self, *arguments: Any) -> int:
        places = [place for place in map(place_of, arguments) if place is not None]
        key = key_of(self._symbol, arguments, [raw(place) for place in places])
        began = time.perf_counter_ns()
        code = self._function(*arguments)
        took = (time.perf_counter_ns() - began) // 1000
        self._said.append(Said(key, code, tuple(map(raw, places)), took))
        return int(code)
