"""The measurement table: derived, complete, and without the clashes that both stores stumble over."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from schemas.catalogue import CATALOGUE
from schemas.store import Measurement as Name
from schemas.telemetry import v1
from sinks.measurements import MEASUREMENTS, Field, check, table
from sinks.points import points_of


def test_there_is_one_measurement_for_each_name() -> None:
    assert set(MEASUREMENTS) == set(get_args(Name))


def test_device_tags_are_the_bounded_ones() -> None:
    assert MEASUREMENTS["device"].tags == ("cluster", "node", "vendor", "uid", "kind", "model")


def test_every_metric_is_a_device_field_with_the_type_of_its_descriptor() -> None:
    types = {"float": "float", "double": "float", "uint32": "uint", "uint64": "uint", "bool": "bool"}
    fields = {f.name: f for f in MEASUREMENTS["device"].fields}
    assert {m.name: (types[m.wire], m.unit, m.meaning) for m in CATALOGUE} == {
        m.name: (fields[m.name].type, fields[m.name].unit, fields[m.name].meaning) for m in CATALOGUE
    }
    assert {m.name for m in CATALOGUE if m.cadence == "slow"} <= {f.name for f in fields.values() if f.when == "full"}


@pytest.mark.parametrize(
    ("extra", "named"), [("cluster", "cluster is both"), ("seq", "twice"), ("time", "reserved")], ids=["tag", "twice", "reserved"]
)
def test_a_clash_is_found(extra: str, named: str) -> None:
    device = MEASUREMENTS["device"]
    broken = replace(device, fields=(*device.fields, Field(extra, "uint", "tick", "1", "")))
    with pytest.raises(ValueError, match=named):
        check({**MEASUREMENTS, "device": broken})


def test_the_printed_table_has_each_tag_and_field_once() -> None:
    rows = table()
    assert len({(r.measurement, r.name) for r in rows}) == len(rows)
    assert len(rows) == sum(len(m.tags) + len(m.fields) for m in MEASUREMENTS.values())


def test_a_list_of_numbers_keeps_seven_digits() -> None:
    said = v1.Forecast(
        cluster="c", node="n", entity="device/a", metric="memory_used_bytes", made_at_ns=1, p50=[80123456789.123, 1 / 3, 0.0]
    )
    (point,) = points_of(said, 0)
    assert point.fields["p50"] == "[80123460000.0,0.3333333,0.0]"
