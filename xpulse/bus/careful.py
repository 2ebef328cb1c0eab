"""After the processor failed on a batch its records are worked one at a time, until those that were in it are well behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from confluent_kafka import KafkaException

from schemas.flow import Busy
from xpulse.bus.producer import Stopped
from xpulse.errors import XPulseError

CALM_RECORDS: Final = 1000
"""Batches are taken again after so many records without a defect: where one is, more are near, and each costs a rebuild of the state."""

NO_DEFECT: Final = (Busy, Stopped, XPulseError, KafkaException, OSError, MemoryError)
"""What `process` may raise that says nothing about the record: the machine or another server is at fault, and the role ends as ever."""

_Key = tuple[str, int]


class Careful:
    """Whether records go one at a time. `failed` begins it, `passed` ends it."""

    def __init__(self) -> None:
        self._until: dict[_Key, int] = {}
        self._left = 0

    def __bool__(self) -> bool:
        return bool(self._until) or self._left > 0

    def failed(self, upto: Mapping[_Key, int]) -> None:
        """The batch that ends at these offsets was not taken in, or a single record of it was given up."""
        for key, offset in upto.items():
            self._until[key] = max(offset, self._until.get(key, 0))
        self._left = CALM_RECORDS

    def passed(self, upto: Mapping[_Key, int], records: int, owned: Collection[_Key]) -> None:
        """So many live records went well, and everything below these offsets is done."""
        if not self:
            return
        self._until = {key: offset for key, offset in self._until.items() if key in owned and upto.get(key, 0) < offset}
        if not self._until:
            self._left -= records
