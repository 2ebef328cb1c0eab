"""One local stack per state folder: a second `xpulse up` beside a running one says so and exits 2."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from xpulse.errors import UsageError


class StackLock:
    """An exclusive lock on `<state>/up.lock`, released by the kernel however the holder ends; the file goes with a clean end."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "up.lock"

    def __enter__(self) -> StackLock:
        try:
            self._file = self._path.open("a+", encoding="ascii")
        except OSError as error:
            raise UsageError(f"state folder {self._path.parent} cannot be written: {error.strerror}; set XPULSE_STATE_DIR") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise UsageError(
                f"xpulse up is already running here (process {holder}, state folder {self._path.parent}); "
                "stop it with Ctrl-C in its terminal, or give this one a folder of its own: XPULSE_STATE_DIR=DIR"
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()
