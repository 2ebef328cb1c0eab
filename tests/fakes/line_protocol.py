"""A small line-protocol parser that reads as InfluxDB's does (models/points.go): for round trips of our encoder."""

from __future__ import annotations

from dataclasses import dataclass

Scalar = float | int | bool | str


@dataclass(frozen=True)
class Parsed:
    """One line, understood. Integers are ints, floats floats."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, Scalar]
    time_ns: int


def parse(line: str) -> Parsed:
    """Raises ValueError for what the server would refuse."""
    measurement, at = _until(line, 0, ", ")
    tags: dict[str, str] = {}
    while line[at] == ",":
        name, at = _until(line, at + 1, "=")
        value, at = _until(line, at + 1, ", ")
        if not name or not value or name in tags:
            raise ValueError(f"tag {name!r}={value!r} in {line!r}")
        tags[_plain(name, ",= ")] = _plain(value, ",= ")
    fields: dict[str, Scalar] = {}
    while line[at] in " ,":
        if line[at] == " " and fields:
            break
        name, at = _until(line, at + 1, "=")
        said, at = _field(line, at + 1)
        fields[_plain(name, ",= ")] = said
    return Parsed(_plain(measurement, ", "), tags, fields, int(line[at + 1 :]))


def _until(line: str, start: int, ends: str) -> tuple[str, int]:
    """Text up to an unescaped end: a backslash steps over the byte after it, whatever that is."""
    at = start
    while line[at] not in ends:
        at += 2 if line[at] == "\\" else 1
    return line[start:at], at


def _plain(text: str, special: str) -> str:
    for character in special:
        text = text.replace("\\" + character, character)
    return text


def _field(line: str, start: int) -> tuple[Scalar, int]:
    if line[start] == '"':
        at, found = start + 1, ""
        while line[at] != '"':
            if line[at] == "\\" and line[at + 1] in '"\\':
                at += 1
            found += line[at]
            at += 1
        return found, at + 1
    raw, at = _until(line, start, ", ")
    if raw in ("true", "false"):
        return raw == "true", at
    if raw.endswith("i"):
        if not -(2**63) <= int(raw[:-1]) < 2**63:
            raise ValueError(f"{raw} does not fit")
        return int(raw[:-1]), at
    if "n" in raw:
        raise ValueError(f"{raw} is no number")
    return float(raw), at
