"""A dictionary of what was written last: where names come and go for months, what nobody has mentioned for longest makes room."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """Holds at most `most` keys; setting one makes it the newest, and one too many drops the oldest. `dropped` counts those.

    Only `d[key] = value` writes: `setdefault` and `update` of a dict would pass the limit by.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.dropped = 0

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self.most:
            del self[next(iter(self))]
            self.dropped += 1
