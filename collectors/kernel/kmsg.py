"""Reads /dev/kmsg: one record per read, numbered by the kernel, so that what was overwritten before it was read can be counted."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from collectors.kernel.record import MOST_BYTES, Record, of_kmsg
from collectors.kernel.source import Batch, Missing, Position

_DEADLINE_EVERY: Final = 256


class Kmsg:
    """See collectors.kernel.source.Source."""

    name = "kmsg"

    def __init__(self, path: Path, read: Callable[[int, int], bytes] = os.read) -> None:
        self._path, self._read = path, read
        self._fd = -1
        # Number and time of the last record; whether only its time is known, because the journal was read before
        self._place = (-1, 0, False)

    def open(self, after: Position | None) -> None:
        """Start behind `after`, of the same boot; at the oldest record there is where it is None."""
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            raise Missing(
                f"{self._path} may not be read: the kernel allows it to root and CAP_SYSLOG only (kernel.dmesg_restrict); "
                "give the agent CAP_SYSLOG, or read access to the journal"
            ) from None
        except OSError as error:
            raise Missing(f"{self._path} cannot be opened: {error.strerror}; in a container mount it from the host") from None
        with contextlib.suppress(OSError):  # a pipe in its place has no other beginning
            os.lseek(self._fd, 0, os.SEEK_SET)
        self._place = (-1, 0, False) if after is None else (after.sequence, after.monotonic_us, after.sequence < 0)

    def read(self, most: int, deadline: float) -> Batch:
        """What there is, `most` records at most, until `deadline` (monotonic seconds)."""
        records: list[Record] = []
        lost = nonsense = 0
        sequence, monotonic_us, by_time = self._place
        more = True
        for i in range(most):
            if i % _DEADLINE_EVERY == _DEADLINE_EVERY - 1 and time.monotonic() > deadline:
                break
            try:
                data = self._read(self._fd, MOST_BYTES)
            except BlockingIOError:
                more = False
                break
            except BrokenPipeError:
                continue  # overwritten while we were away; the next record's number says how many
            if not data:
                more = False
                break
            record = of_kmsg(data)
            if record is None:
                nonsense += 1
                continue
            if by_time:
                if record.monotonic_us <= monotonic_us:
                    continue
            elif sequence >= 0:
                if record.sequence <= sequence:
                    continue
                lost += record.sequence - sequence - 1
            sequence, monotonic_us, by_time = record.sequence, record.monotonic_us, False
            records.append(record)
        self._place = sequence, monotonic_us, by_time
        return Batch(records, lost, nonsense, more, Position(sequence, monotonic_us, "") if sequence >= 0 or by_time else None)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
