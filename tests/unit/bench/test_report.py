"""The figures are flat and complete, and say when something is missing."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from bench.case import CASES, Outcome
from bench.ceilings import Rate
from bench.report import figures, tables

OUTCOME = Outcome(
    case=CASES[0],
    samples=90_000,
    timed=80_000,
    seconds=2.0,
    attributed=90_000,
    stored=90_000,
    owner_unknown=0,
    findings=3,
    alert_records=2,
    dead_letters=0,
    lost_ranges=0,
    cpu_us={"attribute": 10.0, "detect": 5.0, "alert": 1.0, "sqlite": 20.0, "bus": 2.0, "producer": 4.0},
)
KAFKA = replace(
    OUTCOME, case=CASES[2], cpu_us={"attribute": 1.0, "detect": 1.0, "alert": 1.0, "influxdb": 1.0, "kafka": 9.0, "influxd": 9.0}
)
CEILINGS = {"sqlite_raw_rows": Rate(100_000.0, 8.0), "influx_raw_lines": Rate(80_000.0, 20.0)}


def test_figures_are_flat_and_named_by_bus_and_runner() -> None:
    found = figures([OUTCOME, KAFKA], CEILINGS, {"kafka-faust": "no java"}, {"cores": 2})
    assert found["embedded_direct_samples_per_second"] == 40_000
    assert found["embedded_direct_ratio_to_raw"] == 0.4
    assert found["kafka_direct_ratio_to_raw"] == 0.5
    assert found["influx_raw_lines_per_second"] == 80_000
    assert found["embedded_direct_cpu_us_per_sample_store"] == found["embedded_direct_cpu_us_per_sample_attribute"] * 2 == 20.0
    assert (found["embedded_direct_cpu_us_per_sample_roles"], found["embedded_direct_cpu_us_per_sample"]) == (36.0, 42.0)
    assert found["embedded_direct_samples_per_second_by_cpu_on_two_cores"] == round(2e6 / 42)
    assert found["kafka_direct_samples_per_second_by_cpu_on_two_cores"] == round(2e6 / 22)
    assert replace(OUTCOME, cpu_us={"sqlite": 40.0, "bus": 1.0}).on_two_cores == 1e6 / 40
    assert found["kafka_faust_skipped"] == "no java"
    assert found["cores"] == 2


def test_whole_means_that_every_sample_is_attributed_and_stored_once() -> None:
    assert OUTCOME.whole
    for broken in (
        replace(OUTCOME, stored=89_999),
        replace(OUTCOME, stored=90_001),
        replace(OUTCOME, attributed=89_992),
        replace(OUTCOME, dead_letters=1),
        replace(OUTCOME, lost_ranges=1),
    ):
        assert not broken.whole
        assert figures([broken], {}, {}, {})["embedded_direct_whole"] == 0
    assert replace(OUTCOME, stored=89_999).missing == 1


def test_tables_show_rate_ratio_and_what_was_skipped() -> None:
    console = Console(file=io.StringIO(), width=160)
    console.print(tables([OUTCOME], CEILINGS, {"kafka-direct": "kafka: no java"}))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "40,000" in text
    assert "0.400" in text
    assert "skipped kafka-direct: kafka: no java" in text
