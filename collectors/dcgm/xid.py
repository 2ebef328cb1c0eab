"""Xids from DCGM's numbers: a gauge that keeps the last one forever tells news only when it changes; counters tell more and go first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from collectors.dcgm.page import Xids


class News(NamedTuple):
    """This Xid came `times` since the last look. `old`: it was there at the first look, nobody knows since when."""

    code: int
    times: int
    old: bool = False


@dataclass(slots=True)
class XidMemory:
    """What was last known of one GPU. Of the ways in which a page tells of Xids the one that misses fewest is used."""

    _first: bool = True
    _last: int | None = None
    _windowed: dict[int, int] | None = None
    _total: dict[int, int] | None = None

    def step(self, now: Xids) -> list[News]:
        """What is new. A blank gauge says nothing and changes nothing; 0 says that the last Xid is over (the driver was loaded again)."""
        first, self._first = self._first, False
        if now.total is not None:
            news = _totalled(self._total or {}, now.total, first=first)
            self._total = now.total
        elif now.windowed is not None:
            news = _windowed(self._windowed or {}, now.windowed, first=first)
        elif now.last and now.last != self._last:
            news = [News(now.last, 1, old=first)]
        else:
            news = []
        self._windowed = now.windowed  # a window without any may have no line at all
        self._last = now.last if now.last is not None else self._last
        return news


def _totalled(before: dict[int, int], now: dict[int, int], *, first: bool) -> list[News]:
    """A number comes on the page with its first Xid. A total that fell was begun anew with the exporter: all of it is new."""
    risen = {code: total if total < before.get(code, 0) else total - before.get(code, 0) for code, total in now.items()}
    return [News(code, times, old=first) for code, times in risen.items() if times]


def _windowed(before: dict[int, int], now: dict[int, int], *, first: bool) -> list[News]:
    """Old ones leave the window while new ones come: the rise is the least there were."""
    risen = {code: seen - before.get(code, 0) for code, seen in now.items()}
    return [News(code, times, old=first) for code, times in risen.items() if times > 0]
