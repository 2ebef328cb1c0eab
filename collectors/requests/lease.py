"""A lease file: while it exists the driver is to be let go; its first line, where it has one, says why."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MOST: Final = 200
_PLAIN: Final = "the lease file exists"


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """`touch FILE` asks, `rm FILE` ends it. Never waits: it is asked in the agent's loop.

    Only a regular file says why: a pipe would block whoever opens it, and behind a link may stand a file that the one who made the
    link must not read and the agent may; their being there is the request.
    """

    path: Path

    def __call__(self) -> str:
        try:
            if not stat.S_ISREG(self.path.lstat().st_mode):
                return _PLAIN if self.path.exists() else ""
            first = self._first()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:  # it is there, and nobody can say more: who made it wants the driver
            first = (error.strerror or "it cannot be read").encode()
        text = first.decode(errors="replace").strip()
        return "".join(c if c.isprintable() else "?" for c in text) or _PLAIN

    def _first(self) -> bytes:
        # Between the look and this it may have become something else.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _MOST).partition(b"\n")[0] if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        finally:
            os.close(descriptor)
