"""Reads the kernel's lines from the journal through systemd's own journalctl, which follows it and says where each line stands."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import time
from typing import IO, Final

from collectors.kernel.record import Record, of_journal
from collectors.kernel.source import Batch, Missing, Position

_READ_BYTES: Final = 1 << 16
_MUCH_BYTES: Final = 1 << 16
_MORE_SECONDS: Final = 0.05
"""Who took so much has emptied the pipe faster than journalctl fills it: more is on its way. A storm, or the log of a long uptime, comes
in some seconds so, and not a pipeful a tick."""

_MOST_LINE_BYTES: Final = 1 << 20
_FIELDS: Final = "MESSAGE,PRIORITY,SYSLOG_FACILITY,_SOURCE_MONOTONIC_TIMESTAMP"
_START_SECONDS: Final = 0.3


class Journal:
    """See collectors.kernel.source.Source. `command` is journalctl's path or name."""

    name = "journald"

    def __init__(self, command: str) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._buffer = bytearray()
        self._last: Position | None = None

    def open(self, after: Position | None) -> None:
        """Start journalctl behind `after`; at the beginning of this boot where it is None."""
        place = [f"--after-cursor={after.cursor}"] if after is not None and after.cursor else []
        order = [
            self._command,
            "--dmesg",
            "--boot",
            "--no-pager",
            "--quiet",
            "--output=json",
            f"--output-fields={_FIELDS}",
            "--follow",
            "--no-tail",
        ]
        self.close()
        self._last, self._buffer = after, bytearray()
        # A file: a pipe that nobody reads would fill up and stop journalctl
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        try:
            self._process = subprocess.Popen([*order, *place], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors)
        except OSError as error:
            self.close()
            raise Missing(f"{self._command} cannot be run: {error.strerror}; read /dev/kmsg instead (source: kmsg)") from None
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that may not read the journal ends at once
            self._process.wait(_START_SECONDS)
            why = self._why()
            self.close()
            raise Missing(why)

    def read(self, most: int, deadline: float) -> Batch:
        """What journalctl has written. Raises Missing where it has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        records: list[Record] = []
        nonsense = 0
        ended = False
        taken_bytes = 0
        while time.monotonic() <= deadline:
            while (end := self._buffer.find(b"\n")) >= 0:
                if len(records) >= most:
                    return Batch(records, 0, nonsense, True, self._last)
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                nonsense += self._take(line, records)
            if ended:
                if records:
                    break  # its end is told by the next read
                raise Missing(self._why())
            if len(self._buffer) > _MOST_LINE_BYTES:
                self._buffer.clear()
                nonsense += 1
            try:
                data = os.read(self._process.stdout.fileno(), _READ_BYTES)
            except BlockingIOError:
                if taken_bytes >= _MUCH_BYTES and self._more():
                    continue
                return Batch(records, 0, nonsense, False, self._last)
            ended = not data
            self._buffer += data
            taken_bytes += len(data)
        return Batch(records, 0, nonsense, True, self._last)

    def _more(self) -> bool:
        """Whether journalctl writes on within a moment."""
        assert self._process is not None
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout.fileno()], [], [], _MORE_SECONDS)[0])

    def _take(self, line: bytes, records: list[Record]) -> int:
        found = of_journal(line)
        if found is None:
            return 1
        record, cursor = found
        last = self._last
        if last is not None and not last.cursor and record.monotonic_us <= last.monotonic_us:
            return 0  # read from /dev/kmsg before
        self._last = Position(-1, record.monotonic_us, cursor)
        records.append(record)
        return 0

    def _why(self) -> str:
        assert self._process is not None
        self._process.kill()
        code = self._process.wait()
        assert self._errors is not None
        self._errors.seek(0)
        said = self._errors.read(2000).decode("utf-8", "replace").strip().splitlines()
        return (
            f"{self._command} ended with {code}: {said[-1] if said else 'it said nothing'}; the agent's user must be in the group "
            "systemd-journal (or adm), and in a container /run/log/journal, /var/log/journal and /etc/machine-id must be the host's"
        )

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None
