"""A kernel log that behaves like /dev/kmsg, and a journalctl that behaves like systemd's, both fed by hand."""

from __future__ import annotations

import json
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

_JOURNALCTL = """#!{python}
import json, os, sys, time
from pathlib import Path
if {refusal!r}:
    sys.exit({refusal!r})
after = next((a.split("=", 1)[1] for a in sys.argv if a.startswith("--after-cursor=")), "")
assert {{"--dmesg", "--boot", "--follow", "--no-tail", "--output=json"}} <= set(sys.argv)
found, place, parent = not after, 0, os.getppid()
while os.getppid() == parent:
    data = Path({file!r}).read_bytes()[place:]
    place += len(data)
    for line in data.splitlines(keepends=True):
        if found:
            sys.stdout.buffer.write(line)
        found = found or ('"__CURSOR": "' + after + '"').encode() in line
    sys.stdout.buffer.flush()
    time.sleep(0.01)
"""


@dataclass(slots=True)
class FakeKmsg:
    """A ring of `room` records. `read` stands in for os.read: one record each, EAGAIN at the end, EPIPE once after an overrun.

    Who opens the device begins at the oldest record, as after lseek(0, SEEK_SET).
    """

    room: int = 1000
    boot_records: int = 0
    _ring: deque[tuple[int, bytes]] = field(default_factory=deque)
    _next: int = 0
    _place: int | None = None

    def log(self, seconds: float, text: str, *, facility: int = 0, level: int = 3) -> None:
        """The kernel's printk, `seconds` after the boot; what cannot be shown is escaped as the kernel does."""
        escaped = "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in text.encode("utf-8", "surrogateescape"))
        self.raw(f"{facility << 3 | level},{self._next},{round(seconds * 1e6)},-;{escaped}\n SUBSYSTEM=pci\n".encode())

    def raw(self, record: bytes) -> None:
        self._ring.append((self._next, record))
        self._next += 1
        if len(self._ring) > self.room:
            self._ring.popleft()

    def rewind(self) -> None:
        self._place = None

    def read(self, fd: int, size: int) -> bytes:
        oldest = self._ring[0][0] if self._ring else self._next
        if self._place is None:
            self._place = oldest
        if self._place >= self._next:
            raise BlockingIOError
        if self._place < oldest:
            self._place = oldest
            raise BrokenPipeError
        record = self._ring[self._place - oldest][1]
        assert len(record) <= size
        self._place += 1
        return record


class FakeJournal:
    """A journal in a file, and a journalctl beside it that follows it. `refusal`: what it says instead, as without permission."""

    def __init__(self, folder: Path, refusal: str = "") -> None:
        self._file = folder / "journal.json"
        self._file.touch()
        self.command = folder / "journalctl"
        self.command.write_text(_JOURNALCTL.format(python=sys.executable, file=str(self._file), refusal=refusal))
        self.command.chmod(0o755)
        self._count = 0

    def log(self, seconds: float, text: str | list[int] | None) -> str:
        """Returns the entry's cursor."""
        self._count += 1
        cursor = f"s=1;i={self._count:x}"
        entry = {
            "__CURSOR": cursor,
            "MESSAGE": text,
            "PRIORITY": "3",
            "SYSLOG_FACILITY": "0",
            "_SOURCE_MONOTONIC_TIMESTAMP": str(round(seconds * 1e6)),
        }
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return cursor
