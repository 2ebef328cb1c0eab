"""What each answer of InfluxDB's write endpoint means (streams.md §3.2); the only place that reads status codes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Meaning = Literal["written", "outside_retention", "bad_lines", "too_large", "not_allowed", "overloaded", "failed"]

LEAST_WAIT_SECONDS: Final = 1.0
"""A server in trouble may answer `Retry-After: 0`."""

MOST_WAIT_SECONDS: Final = 300.0
# 1.x and early 2.x say `points beyond retention policy dropped=1`, 2.8 `dropped 1 points outside retention policy of …`
_DROPPED: Final = re.compile(r"dropped[= ](\d+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """`reason` is the server's own word. `dropped`: points the server says it left out. `retry_after_seconds` None: it did not say."""

    meaning: Meaning
    reason: str = ""
    dropped: int = 0
    retry_after_seconds: float | None = None


def read_answer(status: int, headers: Mapping[str, str], body: bytes, now_seconds: float) -> Answer:
    """The meaning of a response. `now_seconds` (Unix time) is for a Retry-After that is a date."""
    reason = f"{status}: {_message(body)}"
    if 200 <= status < 300:
        return Answer("written")
    if status in (400, 422):
        # 2.x: 400 wrote nothing, 422 wrote the good lines. Both are rewritten: the same points again change nothing.
        if status == 422 and "retention policy" in reason and (dropped := _DROPPED.search(reason)):
            # a type conflict in the same batch would be named instead, so these are all that is wrong
            return Answer("outside_retention", reason, int(dropped[1]))
        return Answer("bad_lines", reason)
    if status == 413:
        return Answer("too_large", reason)
    if status in (429, 502, 503, 504):
        return Answer("overloaded", reason, retry_after_seconds=_retry_after(headers.get("Retry-After"), now_seconds))
    if status >= 500:
        return Answer("failed", reason)
    # 401, 403, 404 and whatever else (a redirect, a proxy's 405): somebody must change something; data is never dropped for it
    return Answer("not_allowed", reason)


def _message(body: bytes) -> str:
    text = body[:4096].decode(errors="replace").strip()
    try:
        found = json.loads(text)
    except ValueError:
        return text[:500] or "no text"
    return str(found.get("message", text) if isinstance(found, dict) else text)[:500]


def _retry_after(value: str | None, now_seconds: float) -> float | None:
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now_seconds
        except ValueError:
            return None
    return min(max(seconds, LEAST_WAIT_SECONDS), MOST_WAIT_SECONDS) if seconds == seconds else None
