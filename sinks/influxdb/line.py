"""Encodes points as line protocol: a cached prefix per series and a cached template per set of fields, checked once per point.

Integers and unsigned integers are written with `i` (every InfluxDB knows it, only some builds know `u`), floats always with a dot or
an exponent, so the type of a field never depends on its value. A NaN or infinite field is dropped and counted, the rest of the point
is kept; a point without any field gives no line (a lone tag set is a 400). Empty tags are left out.
"""

from __future__ import annotations

from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Final

from sinks.flatten import INT63
from sinks.influxdb import escape
from sinks.measurements import MEASUREMENTS
from sinks.points import Row
from sinks.table import Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.store import Scalar
    from sinks.flatten import FieldType
    from sinks.points import Point
    from sinks.table import Table

_MOST_SERIES: Final = 200_000
"""Prefixes kept before the cache starts again, about 60 MB."""

_FORMATS: Final[dict[FieldType, str]] = {"float": "%r", "uint": "%ri"}
"""How the fast way writes a number. `%r` and not `%d`: a value of the wrong type is then refused by the server instead of cut silently."""


class Encoder:
    """Points to lines. `dropped` counts fields by reason (not_finite, wrong_type, unknown_field), `repairs` changed texts."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.repairs: escape.Repairs = Counter()
        self._keys: dict[str, str] = {}
        self._prefixes: dict[tuple[str, tuple[str, ...]], str] = {}
        self._templates: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def lines(self, points: Sequence[Point]) -> list[bytes]:
        """One line per point, without the newline; b"" where no field is left."""
        if not isinstance(points, Points):
            return [self.line(point) for point in points]
        found = [self.line(point) for point in points.single]
        for table in points.tables:
            found += self._table(table)
        return found

    def _table(self, table: Table) -> list[bytes]:
        if not len(table):
            return []
        first = table.point(0)
        key = (table.measurement, table.names)
        if key not in self._templates:
            self._templates[key] = self._template(first)
        template = self._templates[key]
        if template is None:
            return [self.line(point) for point in table]
        known = self._prefixes
        prefixes = [known.get((table.measurement, tags)) or self._prefix(first._replace(tags=tags)) for tags in table.tags]
        whole = f"%s {template} %d"
        return [(whole % row).encode() for row in zip(prefixes, *table.columns, table.times_ns, strict=True)]

    def line(self, point: Point) -> bytes:
        """The line of one point."""
        measurement, tags, fields, time_ns = point
        prefix = self._prefixes.get((measurement, tags)) or self._prefix(point)
        if type(fields) is Row:
            names, values, checked = fields.names, fields.numbers, True
        else:
            names, values, checked = tuple(fields), tuple(fields.values()), False  # type: ignore[arg-type]  # numbers, where there is a template
        try:
            template = self._templates[measurement, names]
        except KeyError:
            template = self._templates[measurement, names] = self._template(point)
        # a template has only numbers; one sum finds a NaN or an infinity among them
        plain = template is not None and (checked or (isfinite(sum(values)) and max(values) <= INT63))
        body = template % values if template is not None and plain else self._slow(point)
        return f"{prefix} {body} {time_ns}".encode() if body else b""

    def _prefix(self, point: Point) -> str:
        measurement = MEASUREMENTS[point.measurement]
        if len(point.tags) != len(measurement.tags):
            raise ValueError(f"{point.measurement}: {len(point.tags)} tag values for tags {measurement.tags}")
        pairs = sorted((name, value) for name, value in zip(measurement.tags, point.tags, strict=True) if value)
        words = [escape.measurement(point.measurement, self.repairs)]
        words += [f"{escape.key(name, self.repairs)}={escape.key(value, self.repairs)}" for name, value in pairs]
        if len(self._prefixes) >= _MOST_SERIES:
            self._prefixes.clear()
        prefix = self._prefixes[(point.measurement, point.tags)] = ",".join(words)
        return prefix

    def _template(self, point: Point) -> str | None:
        types = MEASUREMENTS[point.measurement].types
        words = []
        for name, value in point.fields.items():
            form = None if isinstance(value, str | bool) else _FORMATS.get(types.get(name, "string"))
            if form is None:
                return None
            words.append(f"{escape.key(name, self.repairs).replace('%', '%%')}={form}")
        return ",".join(words)

    def _slow(self, point: Point) -> str:
        types = MEASUREMENTS[point.measurement].types
        words = []
        for name, value in point.fields.items():
            text = self._value(types.get(name), value)
            if text:
                words.append(f"{self._key(name)}={text}")
        return ",".join(words)

    def _key(self, name: str) -> str:
        """A field's name, escaped once: there are as many as the table of measurements has."""
        if (found := self._keys.get(name)) is None:
            found = self._keys[name] = escape.key(name, self.repairs)
        return found

    def _value(self, kind: FieldType | None, value: Scalar) -> str:
        if kind is None:
            return self._drop("unknown_field")
        if kind == "string":
            return escape.string(value, self.repairs) if isinstance(value, str) else self._drop("wrong_type")
        if kind == "bool":
            return ("true" if value else "false") if isinstance(value, bool) else self._drop("wrong_type")
        if isinstance(value, str | bool):
            return self._drop("wrong_type")
        if not isfinite(value):
            return self._drop("not_finite")
        if kind == "float":
            return repr(float(value))
        return f"{max(-INT63, min(value, INT63))}i" if isinstance(value, int) else self._drop("wrong_type")

    def _drop(self, reason: str) -> str:
        self.dropped[reason] += 1
        return ""
