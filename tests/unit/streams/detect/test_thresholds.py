"""Threshold findings: when they begin, repeat, end, and expire."""

import pytest

from schemas.telemetry import v1
from tests.unit.streams.detect.given import GIB, SECOND, at, batch, rule, run, said, sample, state

LOST = v1.AbsenceReason.ABSENCE_REASON_LOST
HOT = {"type": "above", "metric": "temperature_celsius", "limit": 85, "clear_limit": 80}
FULL = {"type": "ratio_above", "metric": "memory_used_bytes", "of": "memory_total_bytes", "limit": 0.95, "clear_limit": 0.9}


def hot(seconds: float, celsius: float) -> v1.SampleBatch:
    return batch(seconds, sample("v:1", temperature_celsius=celsius))


def test_it_fires_above_the_limit_stays_in_the_band_and_clears_below_it() -> None:
    found = run(state(rule(HOT)), *[hot(s, c) for s, c in enumerate([85, 86, 82, 84, 80, 83, 86])])
    assert said(found) == [(1, "odd", True), (4, "odd", False), (6, "odd", True)]


def test_it_is_repeated_every_15_seconds_while_active() -> None:
    found = run(state(rule(HOT)), *[hot(s, 90) for s in range(40)])
    assert said(found) == [(0, "odd", True), (15, "odd", True), (30, "odd", True)]
    assert {f.since_ns for f in found} == {at(0)}
    assert [f.valid_until_ns - f.observed_at_ns for f in found] == [45 * SECOND] * 3


def test_a_clock_that_was_set_back_does_not_silence_it() -> None:
    found = run(state(rule(HOT)), hot(1000, 90), batch(500, sample("v:1", temperature_celsius=90), sequence=1_000_001))
    assert said(found) == [(1000, "odd", True), (500, "odd", True)]


@pytest.mark.parametrize(
    "later",
    [
        [batch(s, sample("v:1", absent={"temperature_celsius": LOST})) for s in range(1, 60)],
        [batch(s, sample("v:1", power_watts=1)) for s in range(16, 60)],
        [batch(s, sample("v:1", temperature_celsius=float("nan"))) for s in range(16, 60)],
        [batch(s, sample("v:1", temperature_celsius=float("inf"))) for s in range(1, 60)],
    ],
    ids=["absent", "stale", "nan", "infinite"],
)
def test_a_value_that_is_not_there_neither_clears_nor_repeats(later: list[v1.SampleBatch]) -> None:
    given = state(rule(HOT))
    assert said(run(given, hot(0, 90))) == [(0, "odd", True)]
    assert run(given, *later) == []
    assert said(run(given, hot(70, 70))) == [(70, "odd", False)]


def test_a_limit_that_is_another_metric_is_held_until_its_max_age() -> None:
    given = state(rule(FULL))
    first = batch(0, sample("v:1", memory_used_bytes=10 * GIB, memory_total_bytes=80 * GIB))
    full = [batch(s, sample("v:1", memory_used_bytes=77 * GIB)) for s in (100, 181)]
    found = run(given, first, *full)
    assert said(found) == [(100, "odd", True)]
    assert found[0].value == 77 * GIB
    assert found[0].limit == pytest.approx(76 * GIB)
    assert found[0].unit == "By"
    assert found[0].summary == "77.0 GiB"


def test_an_unknown_limit_is_not_zero() -> None:
    given = state(rule({"type": "above", "metric": "temperature_celsius", "limit": {"of": "temperature_slowdown_celsius", "plus": -5}}))
    assert run(given, hot(0, 90)) == []
    assert said(run(given, batch(1, sample("v:1", temperature_celsius=86, temperature_slowdown_celsius=90)))) == [(1, "odd", True)]


def test_the_guard_is_asked_for_firing_only() -> None:
    given = state(
        rule(
            {
                "type": "below",
                "metric": "pcie_link_width",
                "limit": {"of": "pcie_link_width_max"},
                "guard": {"metric": "utilization_ratio", "above": 0.3},
            }
        )
    )

    def link(seconds: float, width: int, busy: float) -> v1.SampleBatch:
        return batch(seconds, sample("v:1", pcie_link_width=width, pcie_link_width_max=16, utilization_ratio=busy))

    found = run(given, link(0, 8, 0.0), link(1, 8, 0.9), link(2, 8, 0.0), link(3, 16, 0.0))
    assert said(found) == [(1, "odd", True), (3, "odd", False)]


def test_bits_are_named() -> None:
    given = state(rule({"type": "bit_set", "metric": "throttle_reasons", "bits": ["software_thermal", "hardware_thermal"]}))
    found = run(given, *[batch(s, sample("v:1", throttle_reasons=bits)) for s, bits in enumerate([0b100, 0b100100, 0b100])])
    assert said(found) == [(1, "odd", True), (2, "odd", False)]
    assert [f.summary for f in found] == ["software_thermal", "none"]
    assert not found[0].HasField("limit")


def test_equals_fires_on_exactly_that_value() -> None:
    given = state(rule({"type": "equals", "metric": "remapped_rows_failed", "value": 1}))
    found = run(given, *[batch(s, sample("v:1", remapped_rows_failed=f)) for s, f in enumerate([False, True, False])])
    assert said(found) == [(1, "odd", True), (2, "odd", False)]
    assert (found[0].value, found[0].limit) == (1.0, 1.0)


def test_equals_can_be_zero() -> None:
    given = state(rule({"type": "equals", "metric": "interconnect_links_active", "value": 0}))
    found = run(given, *[batch(s, sample("v:1", interconnect_links_active=n)) for s, n in enumerate([18, 0, 18])])
    assert said(found) == [(1, "odd", True), (2, "odd", False)]


def test_a_replayed_batch_is_taken_once() -> None:
    given = state(rule(HOT))
    assert said(run(given, hot(1, 90), hot(2, 70), hot(1, 90), hot(2, 70))) == [(1, "odd", True), (2, "odd", False)]
    assert given.counts["duplicate"] == 2


def test_a_new_agent_epoch_starts_its_sequence_again_and_an_older_one_is_skipped() -> None:
    given = state(rule(HOT))
    run(given, batch(5, sample("v:1", temperature_celsius=70), agent_epoch=7, sequence=900))
    assert said(run(given, batch(6, sample("v:1", temperature_celsius=90), agent_epoch=8, sequence=0))) == [(6, "odd", True)]
    assert run(given, batch(7, sample("v:1", temperature_celsius=70), agent_epoch=7, sequence=901)) == []
    assert given.counts == {"old_epoch": 1}


def test_sources_of_a_node_have_sequences_of_their_own() -> None:
    given = state(rule(HOT))
    run(given, batch(9, sample("v:1", temperature_celsius=70), sequence=900))
    assert said(run(given, batch(9, sample("w:1", temperature_celsius=90), sequence=1, source="other"))) == [(9, "odd", True)]


def test_equal_names_in_two_clusters_stay_apart() -> None:
    given = state(rule(HOT))
    found = run(given, batch(1, sample("v:n1:0", temperature_celsius=90)), batch(2, sample("v:n1:0", temperature_celsius=70), cluster="c2"))
    assert [(f.cluster, f.active) for f in found] == [("c1", True)]


def test_a_finding_says_what_it_was_seen_by() -> None:
    given = state(rule(HOT, severity="critical", mode="shadow", hold_seconds=3, clear_seconds=5, runbook="r.md", entity="device"))
    info = v1.DeviceInfo(model="H200")
    found = run(
        given, *[batch(s, v1.DeviceSample(uid="v:1", index=3, info=info, temperature_celsius=80 + s), simulated=True) for s in range(8)]
    )
    assert len(found) == 1
    f = found[0]
    assert (f.entity, f.cluster, f.node, f.simulated) == ("device/v:1", "c1", "n1", True)
    assert (f.severity, f.mode, f.runbook) == (v1.Severity.SEVERITY_CRITICAL, v1.AlertMode.ALERT_MODE_SHADOW, "r.md")
    assert (f.hold_ns, f.clear_ns) == (3 * SECOND, 5 * SECOND)
    assert (f.metric, f.unit, f.value, f.limit) == ("temperature_celsius", "Cel", 86.0, 85.0)
    assert f.evidence["recent"] == "80 °C"
    assert (list(f.recent), f.recent_step_ns) == ([80.0, 86.0], 10 * SECOND)


def test_rows_of_forgotten_nodes_start_fresh() -> None:
    given = state(rule(HOT))
    run(given, hot(0, 90))
    given.fleet.forget("c1", "n1")
    assert len(given.table) == 0
    assert said(run(given, batch(1, sample("v:9", temperature_celsius=82), node="n2"))) == []


def test_many_devices_grow_the_table_and_keep_their_state() -> None:
    given = state(rule(HOT))
    run(given, hot(0, 90))
    run(given, batch(1, *[sample(f"v:many{i}", temperature_celsius=50) for i in range(500)], node="n2"))
    assert said(run(given, hot(2, 70))) == [(2, "odd", False)]
