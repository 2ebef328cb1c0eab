"""The encoder: the escape table of each kind of element, types that never depend on values, and a round trip of anything."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.store import Scalar
from sinks.influxdb import escape
from sinks.influxdb.line import Encoder
from sinks.measurements import MEASUREMENTS
from sinks.points import Point
from tests.fakes.line_protocol import parse

TAGS = ("c", "n", "nvidia", "nvidia:1", "accelerator", "H200")


def point(tags: tuple[str, ...] = TAGS, time_ns: int = 9, **fields: Scalar) -> Point:
    """A device point."""
    return Point("device", tags, fields, time_ns)


@pytest.mark.parametrize(
    ("text", "measurement", "key", "string"),
    [
        ("plain", "plain", "plain", '"plain"'),
        ("a,b", "a\\,b", "a\\,b", '"a,b"'),
        ("a b", "a\\ b", "a\\ b", '"a b"'),
        ("a=b", "a=b", "a\\=b", '"a=b"'),
        ('a"b', 'a"b', 'a"b', '"a\\"b"'),
        ("a\\b", "a\\b", "a\\b", '"a\\\\b"'),
        ("a\\", "a/", "a/", '"a\\\\"'),
        ("a\\,b", "a/\\,b", "a/\\,b", '"a\\\\,b"'),
        ("a\\=b", "a\\=b", "a/\\=b", '"a\\\\=b"'),
        ("a\\\\b", "a/\\b", "a/\\b", '"a\\\\\\\\b"'),
        ("a\nb\r\t\x00", "a\\ b\\ \\ \\ ", "a\\ b\\ \\ \\ ", '"a b   "'),
        ("\ufeffö", "\\ ö", "\\ ö", '" ö"'),
    ],
    ids=["plain", "comma", "space", "equals", "quote", "backslash", "last", "before comma", "before equals", "two", "controls", "bom"],
)
def test_escape_table(text: str, measurement: str, key: str, string: str) -> None:
    repairs: escape.Repairs = Counter()
    assert escape.measurement(text, repairs) == measurement
    assert escape.key(text, repairs) == key
    assert escape.string(text, repairs) == string


def test_a_line_of_each_type() -> None:
    line = Encoder().line(point(seq=5, power_watts=300.0, remapped_rows_failed=False, serial="1 6", energy_joules=1e22))

    assert line == (
        b"device,cluster=c,kind=accelerator,model=H200,node=n,uid=nvidia:1,vendor=nvidia "
        b'seq=5i,power_watts=300.0,remapped_rows_failed=false,serial="1 6",energy_joules=1e+22 9'
    )


def test_a_float_field_stays_float_and_an_integer_integer_whatever_the_value() -> None:
    slow = Encoder().line(point(power_watts=3, seq=3, serial="x"))
    assert b"power_watts=3.0,seq=3i" in slow


def test_empty_tags_are_left_out() -> None:
    assert Encoder().line(Point("usage", ("c", "n", "u", "", ""), {"seq": 1}, 2)) == b"usage,cluster=c,node=n,uid=u seq=1i 2"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf], ids=str)
def test_only_the_field_that_is_not_finite_is_dropped(bad: float) -> None:
    encoder = Encoder()
    assert encoder.line(point(seq=1, power_watts=bad)).endswith(b" seq=1i 9")
    assert encoder.line(point(power_watts=bad)) == b""
    assert encoder.dropped == {"not_finite": 2}


def test_counters_saturate_at_63_bits() -> None:
    assert parse(Encoder().line(point(pcie_tx_bytes=2**64 - 1)).decode()).fields == {"pcie_tx_bytes": 2**63 - 1}


def test_unknown_and_wrong_typed_fields_are_dropped_and_counted() -> None:
    encoder = Encoder()
    line = encoder.line(point(seq=1, nonsense=2, serial=3, power_watts="x", remapped_rows_failed=1, index=1.5, fan_ratio=True))
    assert line.endswith(b" seq=1i 9")
    assert encoder.dropped == {"unknown_field": 1, "wrong_type": 5}


def test_a_forged_measurement_stays_a_value() -> None:
    pod = "x\nalert,status=firing value=1i 1\n"
    line = Encoder().line(Point("service", ("c", "n", "ns", "s", pod), {"seq": 1}, 2))
    assert b"\n" not in line
    assert parse(line.decode()).tags["pod"] == "x alert,status=firing value=1i 1 "


def test_the_number_of_tags_must_be_the_measurement_s() -> None:
    with pytest.raises(ValueError, match="device: 1 tag"):
        Encoder().line(point(tags=("c",)))


NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "uint": st.integers(0, 2**63 - 1),
    "bool": st.booleans(),
}


@st.composite
def points(draw: st.DrawFn) -> Point:
    """Any point of any measurement, with any text."""
    measurement = draw(st.sampled_from(sorted(MEASUREMENTS.values(), key=lambda m: m.name)))
    tags = draw(st.tuples(*(st.text(max_size=8) for _ in measurement.tags)))
    chosen = draw(st.lists(st.sampled_from(measurement.fields), min_size=1, max_size=5, unique=True))
    fields: dict[str, Scalar] = {f.name: draw(NUMBERS[f.type] if f.type in NUMBERS else st.text(max_size=8)) for f in chosen}
    return Point(measurement.name, tags, fields, draw(st.integers(1, 2**62)))


@given(points())
def test_what_is_parsed_is_what_was_meant(point: Point) -> None:
    encoder = Encoder()
    line = encoder.line(point)
    assert b"\n" not in line
    parsed = parse(line.decode())
    assert parsed.measurement == point.measurement
    assert parsed.time_ns == point.time_ns
    names = MEASUREMENTS[point.measurement].tags
    meant = {n: v for n, v in zip(names, point.tags, strict=True) if v}
    if not encoder.repairs:
        assert parsed.tags == meant
        assert parsed.fields == point.fields
    assert set(parsed.tags) == set(meant)
    assert set(parsed.fields) == set(point.fields)
