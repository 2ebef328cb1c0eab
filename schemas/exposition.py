"""Reads Prometheus text (0.0.4) and OpenMetrics 1.0 by the line: what makes no sense is skipped with its reason.

Parsers that raise lose a whole page for one bad line, which dcgm-exporter's unescaped labels and other exporters' odd values do send.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Problem = Literal[
    "name",
    "labels",
    "duplicate_label",
    "value",
    "timestamp",
    "exemplar",
    "type",
    "after_eof",
    "line_too_long",
    "too_many_samples",
    "too_large",
]
FamilyType = Literal["counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown"]

MOST_BYTES: Final = 16 << 20
MOST_SAMPLES: Final = 200_000
MOST_LINE: Final = 65_536
_MOST_NOTED: Final = 100
_MOST_KNOWN_LABELS: Final = 4096
_LATEST: Final = 10**12
"""Seconds since 1970 that no clock shows."""

_TYPES: Final[Mapping[str, FamilyType]] = {
    "counter": "counter",
    "gauge": "gauge",
    "histogram": "histogram",
    "gaugehistogram": "gaugehistogram",
    "summary": "summary",
    "info": "info",
    "stateset": "stateset",
    "unknown": "unknown",
    "untyped": "unknown",
}
_SUFFIXES: Final = ("_total", "_bucket", "_count", "_sum", "_created", "_info", "_gcount", "_gsum")

# Possessive quantifiers: no input makes these go back and forth.
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*+")
_BRACES: Final = re.compile(r'[ \t]*+\{((?:[^"}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+)\}')
_LABEL: Final = re.compile(r'[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t]*+(?:,|$)')
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", '"': '"', "\\": "\\"}


class Scraped(NamedTuple):
    """One line's value. An integer stays one, so that 64-bit numbers are exact. Lines share `labels`: do not write."""

    name: str
    labels: Mapping[str, str]
    value: float | int
    timestamp_ns: int | None


class Skipped(NamedTuple):
    """A line (counted from 1) that was left out."""

    line: int
    problem: Problem


@dataclass(slots=True)
class Exposition:
    """What a page said. `counts` has every skipped line, `skipped` the first 100 of them."""

    samples: list[Scraped] = field(default_factory=list)
    types: dict[str, FamilyType] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    counts: Counter[Problem] = field(default_factory=Counter)
    complete: bool = False
    """It ended with # EOF; OpenMetrics that does not was cut off on its way."""

    def type_of(self, name: str) -> FamilyType:
        """Type of the family that a sample of this name belongs to."""
        found = self.types.get(name)
        if found is None:
            for suffix in _SUFFIXES:
                if name.endswith(suffix) and (found := self.types.get(name.removesuffix(suffix))) is not None:
                    break
        return found or "unknown"


class _Bad(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def parse(
    page: bytes | str,
    *,
    openmetrics: bool | None = None,
    most_bytes: int = MOST_BYTES,
    most_samples: int = MOST_SAMPLES,
) -> Exposition:
    """Every sample that can be read; never raises. Timestamps are milliseconds, in OpenMetrics seconds: `openmetrics` says which
    (from the answer's Content-Type), None goes by whether the page ends with # EOF. What lies beyond `most_bytes` or `most_samples`
    is left out and counted once."""
    found = Exposition()
    raw = page.encode("utf-8", "replace") if isinstance(page, str) else page
    cut = len(raw) > most_bytes
    if cut:
        raw = raw[: raw.rfind(b"\n", 0, most_bytes) + 1]
    text = raw.decode("utf-8", "replace")
    if openmetrics is None:
        openmetrics = text.rstrip().endswith("# EOF")
    known: dict[str, Mapping[str, str]] = {}
    number = 0
    for number, line in enumerate(_lines(text), 1):
        if not line:
            continue
        if len(line) > MOST_LINE:
            _note(found, number, "line_too_long")
            continue
        if found.complete:
            _note(found, number, "after_eof")
            continue
        try:
            if line[0] == "#":
                _comment(line, found)
            elif len(found.samples) >= most_samples:
                _note(found, number, "too_many_samples")
                break
            else:
                found.samples.append(_sample(line, known, openmetrics))
        except _Bad as bad:
            _note(found, number, bad.problem)
    if cut:
        _note(found, number + 1, "too_large")
    return found


def unescaped(text: str) -> str:
    r"""A label value with \\, \" and \n resolved; any other backslash stays, as Prometheus has it."""
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[0]), text) if "\\" in text else text


def number(token: str) -> float | int:
    """A sample's value. Raises ValueError on what Prometheus would not take (Python's own float() takes more)."""
    if _INTEGER.fullmatch(token):
        return int(token)
    if not token.isascii() or "_" in token:
        raise ValueError(f"{token!r} is not a number")
    return float(token)


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        yield text[start:end].strip(" \t\r")
        start = end + 1


def _note(found: Exposition, line: int, problem: Problem) -> None:
    found.counts[problem] += 1
    if len(found.skipped) < _MOST_NOTED:
        found.skipped.append(Skipped(line, problem))


def _comment(line: str, found: Exposition) -> None:
    words = line.split(None, 4)
    match words:
        case ["#", "EOF"]:
            found.complete = True
        case ["#", "TYPE", name, kind] if _NAME.fullmatch(name) and kind in _TYPES:
            found.types[name] = _TYPES[kind]
        case ["#", "TYPE", *_]:
            raise _Bad("type")
        case _:
            pass


def _sample(line: str, known: dict[str, Mapping[str, str]], openmetrics: bool) -> Scraped:
    match = _NAME.match(line)
    if match is None:
        raise _Bad("name")
    name, at = match[0], match.end()
    labels: Mapping[str, str] = {}
    last = line.rfind("}") if line[at : at + 1] == "{" else -1
    if last > 0 and (seen := known.get(line[at + 1 : last])) is not None:
        # The same block as on a line before (each metric repeats its devices'): a third of the time.
        labels, at = seen, last + 1
    elif (braces := _BRACES.match(line, at)) is not None:
        at = braces.end()
        labels = _labels(braces[1])
        if len(known) < _MOST_KNOWN_LABELS:
            known[braces[1]] = labels
    elif line[at:].lstrip(" \t").startswith("{"):
        raise _Bad("labels")
    elif line[at : at + 1] not in ("", " ", "\t"):
        raise _Bad("name")
    words = line[at:].split()
    if "#" in words:
        cut = words.index("#")
        if not openmetrics or len(words) < cut + 3 or not words[cut + 1].startswith("{"):
            raise _Bad("exemplar")
        words = words[:cut]
    if not 1 <= len(words) <= 2:
        raise _Bad("value" if not words else "timestamp")
    try:
        value = number(words[0])
    except ValueError:
        raise _Bad("value") from None
    return Scraped(name, labels, value, _timestamp_ns(words[1], openmetrics) if len(words) == 2 else None)


def _labels(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    at, end = 0, len(text.rstrip(" \t"))
    while at < end:
        match = _LABEL.match(text, at)
        if match is None:
            raise _Bad("labels")
        if match[1] in found:
            raise _Bad("duplicate_label")
        found[match[1]] = unescaped(match[2])
        at = match.end()
    return found


def _timestamp_ns(token: str, openmetrics: bool) -> int:
    try:
        at = number(token)
    except ValueError:
        raise _Bad("timestamp") from None
    if isinstance(at, int) and abs(at) < _LATEST * (1 if openmetrics else 1000):
        return at * (10**9 if openmetrics else 10**6)
    if openmetrics and abs(at) < _LATEST:
        return round(at * 1e9)
    raise _Bad("timestamp")
