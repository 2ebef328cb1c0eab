"""The exposition parser takes every valid page, loses single bad lines only, and raises on nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import exposition
from schemas.exposition import Scraped, Skipped, parse

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
LABEL_NAMES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,8}", fullmatch=True)
LABELS = st.dictionaries(LABEL_NAMES, st.text(st.characters(codec="utf-8"), max_size=12), max_size=4)
VALUES = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats())
ROWS = st.lists(st.tuples(NAMES, LABELS, VALUES, st.none() | st.integers(0, 10**14)), max_size=8)


def number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)


def line(name: str, labels: dict[str, str], value: float, timestamp: int | None) -> str:
    escaped = {k: v.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for k, v in labels.items()}
    braces = "{" + ",".join(f'{k}="{v}"' for k, v in escaped.items()) + "}" if labels else ""
    return f"{name}{braces} {number(value)}" + (f" {timestamp}" if timestamp is not None else "")


def plain(samples: list[Scraped]) -> list[tuple[str, dict[str, str], str, int | None]]:
    return [(s.name, dict(s.labels), number(s.value), s.timestamp_ns) for s in samples]


@settings(max_examples=40)
@given(ROWS)
def test_what_was_written_is_read(rows: list[tuple[str, dict[str, str], float, int | None]]) -> None:
    found = parse("\n".join(line(*row) for row in rows) + "\n")
    assert not found.counts
    assert plain(found.samples) == [(n, labels, number(v), None if t is None else t * 10**6) for n, labels, v, t in rows]


@settings(max_examples=40)
@given(ROWS)
def test_the_oracle_reads_the_same(rows: list[tuple[str, dict[str, str], float, int | None]]) -> None:
    oracle: Any = pytest.importorskip("prometheus_client.parser")
    page = "\n".join(line(*row) for row in rows) + "\n"
    theirs = [
        (s.name, dict(s.labels), float(s.value), None if s.timestamp is None else round(float(s.timestamp) * 1000))
        for family in oracle.text_string_to_metric_families(page)
        for s in family.samples
    ]
    ours = [
        (s.name, dict(s.labels), float(s.value), None if s.timestamp_ns is None else s.timestamp_ns // 10**6) for s in parse(page).samples
    ]
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


@given(st.binary(max_size=400) | st.text(st.sampled_from('ab{}=",\\n #1.eE+-_NaIf\t\r'), max_size=200))
def test_no_bytes_raise(page: bytes | str) -> None:
    found = parse(page)
    assert all(s.name for s in found.samples)
    assert sum(found.counts.values()) >= len(found.skipped)


@settings(max_examples=40)
@given(ROWS, st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=40))
def test_one_bad_line_loses_no_other(rows: list[tuple[str, dict[str, str], float, int | None]], noise: str) -> None:
    lines = [line(*row) for row in rows]
    found = parse("\n".join([*lines, "{" + noise, *lines]) + "\n")
    assert len(found.samples) == 2 * len(rows)
    assert found.skipped == [Skipped(len(rows) + 1, "name")]


PAGE = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",pod="x",} 7
DCGM_FI_DEV_GPU_UTIL { gpu = "1" , UUID = "GPU-b" } 8.5 1700000000000
"""


def test_labels_types_and_milliseconds() -> None:
    found = parse(PAGE.replace("\n", "\r\n"))
    assert found.samples == [
        ("DCGM_FI_DEV_GPU_UTIL", {"gpu": "0", "UUID": "GPU-a", "pod": "x"}, 7, None),
        ("DCGM_FI_DEV_GPU_UTIL", {"gpu": "1", "UUID": "GPU-b"}, 8.5, 1_700_000_000_000_000_000),
    ]
    assert found.type_of("DCGM_FI_DEV_GPU_UTIL") == "gauge"
    assert found.type_of("other") == "unknown"
    assert not found.counts
    assert not found.complete


def test_openmetrics_seconds_exemplars_and_suffixes() -> None:
    found = parse('# TYPE a counter\n# UNIT a s\na_total{x="#"} 3 1.5 # {trace="y"} 1 2\na_created 1\n# EOF\n')
    assert found.samples == [("a_total", {"x": "#"}, 3, 1_500_000_000), ("a_created", {}, 1, None)]
    assert found.type_of("a_total") == "counter"
    assert found.complete


def test_an_open_metrics_page_that_was_cut_off_is_known_by_its_content_type() -> None:
    found = parse("a 1 1.5\n", openmetrics=True)
    assert found.samples == [("a", {}, 1, 1_500_000_000)]
    assert not found.complete


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("9a 1", "name"),
        ("a-b 1", "name"),
        ('{__name__="a"} 1', "name"),
        ('a{b="c} 1', "labels"),
        ('a{b="c"d"} 1', "labels"),
        ("a{b=c} 1", "labels"),
        ('a{b="c",,} 1', "labels"),
        ('a{1="c"} 1', "labels"),
        ('a{b="c",b="d"} 1', "duplicate_label"),
        ("a", "value"),
        ("a 1_000", "value"),
        ("a \uff11", "value"),
        ("a [N/A]", "value"),
        ("a 0x1p-2", "value"),
        ("a 1 now", "timestamp"),
        ("a 1 1.5", "timestamp"),
        ("a 1 99999999999999999999", "timestamp"),
        ("a 1 2 3", "timestamp"),
        ("a 1 # {} 1", "exemplar"),
        ("# TYPE a", "type"),
        ("# TYPE a speed", "type"),
        ("a 1" + " " * 10 + "#" * 70_000, "line_too_long"),
    ],
)
def test_a_bad_line_is_skipped_with_its_reason(text: str, problem: str) -> None:
    found = parse(f"first 1\n{text}\nlast 1\n")
    assert [s.name for s in found.samples] == ["first", "last"]
    assert found.skipped == [(2, problem)]


def test_nothing_counts_after_eof() -> None:
    found = parse("a 1\n# EOF\nb 1\n# EOF\n", openmetrics=True)
    assert [s.name for s in found.samples] == ["a"]
    assert found.counts == {"after_eof": 2}


def test_escapes() -> None:
    (only,) = parse(r'a{b="\\n\n\"\x"} 1').samples
    assert only.labels == {"b": '\\n\n"\\x'}


def test_64_bit_integers_are_exact_and_longer_numbers_are_floats() -> None:
    values = [s.value for s in parse("a 9223372036854775794\nb 1" + "0" * 30 + "\nc +7\nd 1e3\n").samples]
    assert values == [9223372036854775794, 1e30, 7, 1000.0]
    assert [type(v) for v in values] == [int, float, int, float]


def test_a_page_too_large_is_cut_at_a_line() -> None:
    found = parse("a 1\nb 2\nc 3\n", most_bytes=9)
    assert [s.name for s in found.samples] == ["a", "b"]
    assert found.skipped == [(3, "too_large")]


def test_too_many_samples_end_the_reading() -> None:
    found = parse("a 1\nb 2\nc 3\n", most_samples=2)
    assert [s.name for s in found.samples] == ["a", "b"]
    assert found.skipped == [(3, "too_many_samples")]


def test_the_list_of_skipped_lines_is_bounded_the_counts_are_not() -> None:
    found = parse("!\n" * 500)
    assert len(found.skipped) == 100
    assert found.counts["name"] == 500


def test_hostile_lines_take_no_long_time() -> None:
    """Each of these makes a backtracking expression of the usual form take minutes."""
    size = exposition.MOST_LINE - 10
    for text in ('a{b="' + "\\" * size, "a{" + '"",' * (size // 3), "a{" + 'b="c"' * (size // 5), 'a{b="' + '\\"' * (size // 2)):
        assert parse(text).counts == {"labels": 1}
