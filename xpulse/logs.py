"""Logging of a role: one line a record, as text for people or as JSON for collectors; control characters never reach a terminal raw."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xpulse.settings import Logs

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {k: v for k, v in vars(record).items() if k not in _STANDARD and not k.startswith("_")}


def printable(text: str) -> str:
    """Text with every control character escaped: log lines and terminals show what users named, never what they command."""
    return "".join(c if c.isprintable() or c == " " else c.encode("unicode_escape").decode() for c in text)


class TextFormatter(logging.Formatter):
    """`time level role message key=value ...`"""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]
        fields = "".join(f" {k}={printable(str(v))}" for k, v in _fields(record).items())
        line = f"{at} {record.levelname.lower():7} {self._role} {printable(record.getMessage())}{fields}"
        if not record.exc_info:
            return line
        trace = self.formatException(record.exc_info).splitlines()
        return "\n".join([line, *map(printable, trace)])


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (RFC 3339), level, role, logger, message, then the record's own fields."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        row: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "role": self._role,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        return json.dumps(row, default=str, ensure_ascii=False)


def set_up(role: str, logs: Logs) -> None:
    """Send every record of this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(role) if logs.format == "json" else TextFormatter(role))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logs.level.upper())
    for chatty in ("faust", "mode", "aiokafka", "asyncio", "urllib3"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
