"""Makes text from outside safe to store, show and send (a pod's name is its user's choice): no control characters, no endless values."""

from __future__ import annotations

import re
from typing import Final

MAX_TAG_CHARACTERS: Final = 256
"""Kubernetes names end at 253, device uuids far below; InfluxDB refuses a series key of more than 65,535 bytes."""

MAX_FIELD_CHARACTERS: Final = 16_000
"""InfluxDB refuses a string field of more than 65,535 bytes; a character has at most four."""

_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


def clean(text: str, most: int) -> str:
    """The text with every control character, line separator, byte-order mark and lone surrogate as a space, cut to `most` characters."""
    if _UNSAFE.search(text):
        text = _UNSAFE.sub(" ", text)
    return text if len(text) <= most else text[: most - 1] + "…"
