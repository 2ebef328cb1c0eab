"""Which device a plugin's process is at, in memory that the agent can read while that process hangs: a hang gets a name.

The plugin notes a key before each device it asks about; where the process is killed as hung, the agent knows whom to leave out.
"""

from __future__ import annotations

import mmap
import os
from typing import Final, NamedTuple

_BYTES: Final = 4096
_MOST: Final = 250
"""Bytes of a note, a key and a uid: its length is one byte, which is written in one go."""


class Place(NamedTuple):
    """`key` is the plugin's own word for what it asked about, `uid` the device's where it is known."""

    key: str
    uid: str = ""


class Notes:
    """A page of memory shared over `fd`. One writes (the plugin's process), the other reads; each note is whole or not there."""

    def __init__(self, fd: int) -> None:
        self._page = mmap.mmap(fd, _BYTES)

    def note(self, key: str, uid: str = "") -> None:
        """Where the process is from now on; an empty key: nowhere in particular."""
        text = f"{key}\0{uid}".encode()[:_MOST]
        # The length is written last: a reader sees the new note or none.
        self._page[0] = 0
        self._page[1 : 1 + len(text)] = text
        self._page[0] = len(text)

    def read(self) -> Place | None:
        """The newest note; None where there is none, or an empty one."""
        length = self._page[0]
        if not length:
            return None
        key, _, uid = bytes(self._page[1 : 1 + length]).decode(errors="replace").partition("\0")
        return Place(key, uid) if key else None

    def close(self) -> None:
        self._page.close()


def make() -> int:
    """A descriptor of such a page, to be handed to the process."""
    fd = os.memfd_create("xpulse-whereabouts", os.MFD_CLOEXEC)
    os.ftruncate(fd, _BYTES)
    return fd
