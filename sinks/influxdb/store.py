"""Reads InfluxDB 2.x through influxdb-client and Flux, with the same answers as the embedded store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schemas.store import Event, Interval, Latest, Measurement, Row, Series, Tags
from sinks import reading
from sinks.influxdb import flux
from sinks.points import SPREAD_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sinks.influxdb.http import Target
    from sinks.measurements import Measurement as Table


class InfluxStore:
    """schemas.store.Store on a bucket. The client (and its 30 MB) is imported with the first query."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._client: Any = None

    def latest(self, measurement: Measurement, *, where: Mapping[str, str] | None = None, since_ns: int = 0) -> list[Latest]:
        table = reading.measurement_of(measurement, where)
        # last() of each field alone is answered from the index of blocks, however many points there are
        newest = self._by_series(self._query(f"{self._read(table, since_ns, flux.NEVER_NS, where)} |> last()"), table)
        said = {tags: {c.field: (c.value, c.time_ns) for c in cells} for tags, cells in newest.items()}
        current = {tags: _current(table, fields) for tags, fields in said.items()}
        texts = self._absent_since(table, current, where)
        return [reading.latest_of(tags, fields, texts.get(tags, [])) for tags, fields in sorted(current.items())]

    def range(
        self,
        measurement: Measurement,
        fields: Sequence[str],
        *,
        start_ns: int,
        end_ns: int,
        step_ns: int | None = None,
        where: Mapping[str, str] | None = None,
        max_age_ns: int | None = None,
    ) -> list[Series]:
        import numpy as np

        table = reading.measurement_of(measurement, where)
        reading.check_numeric(table, fields)
        found: list[tuple[Tags, int, Series]] = []
        for order, field in enumerate(fields):
            held = reading.held_ns(table, field, step_ns, max_age_ns) if step_ns is not None else 0
            query = self._read(table, start_ns - held, end_ns, where, [field])
            if step_ns is not None:
                # windows (start + i * step, start + (i + 1) * step]: the last of each is all that the grid can see
                query += f" |> window(every: {step_ns}ns, offset: {(start_ns + 1) % step_ns}ns) |> last()"
            points = self._by_series(self._query(query), table)
            texts = self._absent_texts(table, start_ns - held, end_ns, where) if step_ns is not None else {}
            for tags, cells in points.items():
                cells.sort(key=lambda c: c.time_ns)
                times = np.array([c.time_ns for c in cells], np.int64)
                values = np.array([float(c.value) for c in cells])
                if made := reading.series_of(tags, field, times, values, texts.get(tags, []), start_ns, end_ns, step_ns, held):
                    found.append((tags, order, made))
        return [series for _, _, series in sorted(found, key=lambda f: f[:2])]

    def rows(self, measurement: Measurement, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Row]:
        return reading.in_order(self._rows(reading.measurement_of(measurement, where), where, start_ns, end_ns))

    def series(self, measurement: Measurement, *, where: Mapping[str, str] | None = None) -> list[Tags]:
        table = reading.measurement_of(measurement, where)
        # every point has seq, so it stands for its series
        query = f"{self._read(table, 0, flux.NEVER_NS, where, ['seq'])} |> last()"
        return sorted(self._by_series(self._query(query), table))

    def events(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Event]:
        asked = (where or {}).get("kind") == reading.ALLOCATION
        found = self._events(where, start_ns, end_ns + SPREAD_NS)
        return reading.events_between((e for e in found if asked or e.kind != reading.ALLOCATION), start_ns, end_ns)

    def intervals(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Interval]:
        allocations = {**(where or {}), "kind": reading.ALLOCATION}
        return reading.intervals_of(self._events(allocations, 0, end_ns + SPREAD_NS), start_ns, end_ns)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _events(self, where: Mapping[str, str] | None, start_ns: int, end_ns: int) -> list[Event]:
        found = self._rows(reading.measurement_of("event", where), where, start_ns, end_ns)
        return [reading.event_of(row.tags, row.at_ns, row.fields) for row in found]

    def _rows(self, table: Table, where: Mapping[str, str] | None, start_ns: int, end_ns: int) -> list[Row]:
        found = []
        for tags, cells in self._by_series(self._query(self._read(table, start_ns, end_ns, where)), table).items():
            at: dict[int, dict[str, Any]] = {}
            for cell in cells:
                at.setdefault(cell.time_ns, {})[cell.field] = cell.value
            found += [Row(time_ns, tags, fields) for time_ns, fields in at.items()]
        return found

    def _absent_since(
        self, table: Table, current: Mapping[Tags, Mapping[str, reading.FieldAt]], where: Mapping[str, str] | None
    ) -> dict[Tags, list[tuple[int, str]]]:
        """The `absent` texts since each series' full sample: the newest, and the earlier ones where the newest is of a thin sample."""
        newest = {tags: fields["absent"] for tags, fields in current.items() if "absent" in fields}
        full = {tags: fields[reading.FULL_MARK][1] for tags, fields in current.items() if reading.FULL_MARK in fields}
        if all(full.get(tags) == at for tags, (_, at) in newest.items()):
            return {tags: [(at, str(value))] for tags, (value, at) in newest.items()}
        texts = self._absent_texts(table, min(full.values(), default=0), flux.NEVER_NS, where)
        return {tags: [(at, t) for at, t in found if at >= full.get(tags, 0)] for tags, found in texts.items()}

    def _absent_texts(self, table: Table, start_ns: int, end_ns: int, where: Mapping[str, str] | None) -> dict[Tags, list[tuple[int, str]]]:
        if "absent" not in table.types:
            return {}
        found = self._by_series(self._query(self._read(table, start_ns, end_ns, where, ["absent"])), table)
        return {tags: sorted((c.time_ns, str(c.value)) for c in cells) for tags, cells in found.items()}

    def _read(self, table: Table, start_ns: int, end_ns: int, where: Mapping[str, str] | None, fields: Sequence[str] = ()) -> str:
        return flux.read(self._target.bucket, table.name, start_ns, end_ns, where, fields)

    def _by_series(self, cells: Iterable[flux.Cell], table: Table) -> dict[Tags, list[flux.Cell]]:
        found: dict[Tags, list[flux.Cell]] = {}
        for cell in cells:
            found.setdefault(reading.tags_of(table, [cell.tags.get(tag, "") for tag in table.tags]), []).append(cell)
        return found

    def _query(self, query: str) -> Iterable[flux.Cell]:
        from influxdb_client.client.flux_csv_parser import FluxCsvParserException
        from influxdb_client.rest import ApiException
        from urllib3.exceptions import HTTPError

        from sinks.influxdb.client import connect, dialect

        if self._client is None:
            self._client = connect(self._target)
        try:
            response = self._client.query_api().query_raw(query, dialect=dialect())
            return list(flux.cells(response.data.decode().splitlines(keepends=True)))
        except ApiException as error:
            raise ConnectionError(f"InfluxDB at {self._target.url}: {error.status} {error.reason}: {_message(error)}") from None
        except (HTTPError, OSError, FluxCsvParserException) as error:
            raise ConnectionError(f"InfluxDB at {self._target.url}: {error}") from None


def _current(table: Table, said: dict[str, reading.FieldAt]) -> dict[str, reading.FieldAt]:
    """Of a device what was said since its last full sample, of anything else its newest point: InfluxDB keeps older fields as `last`."""
    since = max(at for _, at in said.values())
    if reading.FULL_MARK in table.types:
        since = said[reading.FULL_MARK][1] if reading.FULL_MARK in said else 0
    return {name: found for name, found in said.items() if found[1] >= since}


def _message(error: Any) -> str:
    body = error.body
    return (body.decode(errors="replace") if isinstance(body, bytes) else str(body or ""))[:300]
