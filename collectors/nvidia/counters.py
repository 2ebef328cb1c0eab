"""Makes a counter of 32 bits, which wraps each 4 GiB, into one that does not; where wraps cannot be counted it says so."""

from __future__ import annotations

from typing import Final

from schemas.values import Absent, Reading

_SPAN: Final = 1 << 32


class Unwrapped:
    """A growing count of bytes from readings modulo 2^32.

    PCIe 5.0 x16 moves up to 63 GB in a second, so the readings alone do not say how often the counter wrapped between two of them. An
    independent figure of the bytes moved (NVML's GPM has one on Hopper and newer) decides; it need only be right within 2 GiB.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._total = 0

    def begin(self, raw: int) -> int:
        """A reading without a figure, where one will come: counting starts here, or stands still."""
        if self._last is None:
            self._last = self._total = raw
        return self._total

    def step(self, raw: int, moved: float | None) -> Reading:
        """The unwrapped count after a new reading; absent(not_supported) where `moved`, the bytes since the last one, is not known."""
        if moved is None:
            return Absent("not_supported")
        if self._last is None:
            return self.begin(raw)
        delta = (raw - self._last) % _SPAN
        self._last = raw
        self._total += delta + max(0, round((moved - delta) / _SPAN)) * _SPAN
        return self._total
