"""Tells people what a long build is doing, one line at a time, with the seconds since it began."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """Writes `[ 12.3 s] kafka: …` lines; the clock starts when the object is made."""

    def __init__(self, subject: str, *, out: TextIO | None = None, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._subject = subject
        self._out = sys.stderr if out is None else out
        self._monotonic_seconds = monotonic_seconds
        self._began_at = monotonic_seconds()

    @property
    def elapsed_seconds(self) -> float:
        """How long ago this progress began."""
        return self._monotonic_seconds() - self._began_at

    def line(self, text: str) -> None:
        """Write one line now, also where the output is a pipe."""
        self._out.write(f"[{self.elapsed_seconds:6.1f} s] {self._subject}: {text}\n")
        self._out.flush()
