"""The escape tables of line protocol, one per kind of element: exactly what the parser undoes, so that no name or value can forge a line.

InfluxDB's parser (models/points.go) steps over a backslash *and the byte after it* when it looks for the end of a measurement,
key or tag value, but turns only backslash + special character back into the character. So a backslash is literal before an
ordinary character, and no spelling exists for one before a special character, before another backslash or at the end: there it
becomes a slash, and is counted. In a quoted string only the quote and the backslash are escaped. Control characters would end a line
(a pod's name is its user's choice): they become spaces.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from sinks.text import clean

_ENDLESS: Final = 1 << 30
_MEASUREMENT_BACKSLASH: Final = re.compile(r"\\(?=[\\, ]|$)")
_KEY_BACKSLASH: Final = re.compile(r"\\(?=[\\,= ]|$)")
_MEASUREMENT: Final = str.maketrans({",": "\\,", " ": "\\ "})
_KEY: Final = str.maketrans({",": "\\,", "=": "\\=", " ": "\\ "})
_STRING: Final = str.maketrans({'"': '\\"', "\\": "\\\\"})

Repairs = Counter[str]
"""How many values had to be changed, by what was wrong with them."""


def measurement(text: str, repairs: Repairs) -> str:
    """A measurement's name: comma and space are escaped, the equals sign is not."""
    return _repair(text, _MEASUREMENT_BACKSLASH, repairs).translate(_MEASUREMENT)


def key(text: str, repairs: Repairs) -> str:
    """A tag key, tag value or field key: comma, equals sign and space are escaped."""
    return _repair(text, _KEY_BACKSLASH, repairs).translate(_KEY)


def string(text: str, repairs: Repairs) -> str:
    """A quoted string field."""
    return f'"{_without_controls(text, repairs).translate(_STRING)}"'


def _repair(text: str, backslash: re.Pattern[str], repairs: Repairs) -> str:
    text = _without_controls(text, repairs)
    if "\\" in text:
        # $ also matches before a final newline, but no newline is left here
        text, changed = backslash.subn("/", text)
        repairs["backslash"] += bool(changed)
    return text


def _without_controls(text: str, repairs: Repairs) -> str:
    safe = clean(text, _ENDLESS)
    if safe is not text:
        repairs["control_character"] += 1
    return safe
