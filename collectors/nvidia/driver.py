"""The driver as a whole: which load of it this is, and when to try again after it went away."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MODULE: Final = Path("/sys/module/nvidia")


def driver_epoch(module: Path = MODULE) -> int:
    """Another number after each load of the kernel module within one boot; 0 where /sys does not show the module.

    The kernel numbers sysfs nodes in rising order and does not use a number again soon (kernfs, idr_alloc_cyclic).
    """
    try:
        return module.stat().st_ino
    except OSError:
        return 0


class Retry:
    """When to open a session again: at once, then after 1, 2, 4 … seconds, `most_seconds` at last. Times are the monotonic clock's."""

    def __init__(self, most_seconds: float) -> None:
        self._most, self._wait, self._due = most_seconds, 0.0, float("-inf")

    def due(self, at: float) -> bool:
        return at >= self._due

    def failed(self, at: float) -> None:
        self._wait = min(self._most, max(1.0, 2 * self._wait))
        self._due = at + self._wait

    def succeeded(self) -> None:
        self._wait, self._due = 0.0, float("-inf")
