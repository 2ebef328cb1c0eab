"""Builds Flux queries from checked parts, and reads the CSV they answer with exact nanoseconds (the client's own records lose them)."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from schemas.store import Scalar

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NS: Final = 1_000_000_000
NEVER_NS: Final = 2**63 - 2
"""The last time that InfluxDB stores."""


class Cell(NamedTuple):
    """One value of one field of one series. `tags`: only those that are set."""

    tags: Mapping[str, str]
    field: str
    time_ns: int
    value: Scalar


def text(value: str) -> str:
    """A Flux string literal; `${` would begin an expression."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${").replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def read(bucket: str, measurement: str, start_ns: int, end_ns: int, where: Mapping[str, str] | None, fields: Iterable[str] = ()) -> str:
    """`from |> range |> filter` for points in [start, end); no field means all."""
    conditions = [f"r._measurement == {text(measurement)}"]
    conditions += [f"r[{text(tag)}] == {text(value)}" for tag, value in (where or {}).items()]
    if names := [f"r._field == {text(name)}" for name in fields]:
        conditions.append(f"({' or '.join(names)})")
    span = f"range(start: {instant(start_ns)}, stop: {instant(end_ns)})"
    return f"from(bucket: {text(bucket)}) |> {span} |> filter(fn: (r) => {' and '.join(conditions)})"


def instant(time_ns: int) -> str:
    """A Flux time literal of ns UTC, within what the server can hold."""
    time_ns = min(max(time_ns, 0), NEVER_NS)
    seconds, rest = divmod(time_ns, _NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def nanoseconds(stamp: str) -> int:
    """ns UTC of an RFC 3339 time as InfluxDB writes it (UTC, up to nine digits)."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    delta = datetime.fromisoformat(whole + "+00:00") - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * _NS + int(fraction.ljust(9, "0") or 0)


def cells(lines: Iterable[str]) -> Iterator[Cell]:
    """The values in an annotated CSV answer (annotation `datatype`). Raises ConnectionError for an error that comes in the middle."""
    types: list[str] = []
    header: list[str] = []
    for row in csv.reader(lines):
        if not row or not any(row):
            header = []
        elif row[0] == "#datatype":
            types, header = row, []
        elif not header:
            header = row
            if "error" in header:
                types = []
        elif "error" in header:
            raise ConnectionError(f"InfluxDB: {dict(zip(header, row, strict=False)).get('error')}")
        else:
            yield _cell(dict(zip(header, zip(types, row, strict=False), strict=False)))


def _cell(row: Mapping[str, tuple[str, str]]) -> Cell:
    tags = {name: value for name, (_, value) in row.items() if value and name not in ("", "result", "table") and not name.startswith("_")}
    return Cell(tags, row["_field"][1], nanoseconds(row["_time"][1]), _value(*row["_value"]))


def _value(kind: str, raw: str) -> Any:
    match kind:
        case "double":
            return float(raw)
        case "long" | "unsignedLong":
            return int(raw)
        case "boolean":
            return raw == "true"
        case _:
            return raw
