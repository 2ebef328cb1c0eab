"""Counters: growth is seen for a while, a reset is told from a fault."""

import pytest

from schemas.telemetry import v1
from tests.unit.streams.detect.given import batch, rule, run, said, sample, state

ANY = {"type": "increases", "metric": "ecc_uncorrected_volatile_errors", "within_seconds": 60}


def errors(seconds: float, count: int, boot: str = "a", driver: int = 0) -> v1.SampleBatch:
    return batch(seconds, sample("v:1", ecc_uncorrected_volatile_errors=count), boot_id=boot, driver_epoch=driver)


def test_the_first_value_is_the_base_and_not_growth() -> None:
    assert run(state(rule(ANY)), *[errors(s, 7) for s in range(100)]) == []


def test_growth_is_seen_for_half_to_all_of_the_window_and_then_clears() -> None:
    found = run(state(rule(ANY)), *[errors(s, 7 if s < 50 else 9) for s in range(200)])
    changes = [f for f in found if f.since_ns == f.observed_at_ns or not f.active]
    assert next((s, a) for s, _, a in said(changes)) == (50, True)
    assert not changes[-1].active
    assert 30 <= said(changes)[-1][0] - 50 <= 60
    assert changes[0].value == 2


def test_less_than_asked_is_not_a_burst() -> None:
    burst = rule(ANY | {"more_than": 10})
    assert run(state(burst), *[errors(s, s // 10) for s in range(200)]) == []
    assert said(run(state(burst), *[errors(s, s) for s in range(20)]))[0] == (11, "odd", True)


@pytest.mark.parametrize(
    ("second", "value", "faults"),
    [(errors(1, 3, boot="b"), 3, 0), (errors(1, 3, driver=1), 3, 0), (errors(1, 9, boot="b"), 2, 0)],
    ids=["reboot", "driver_load", "no_reset_in_new_epoch"],
)
def test_in_a_new_epoch_a_lower_value_was_counted_since(second: v1.SampleBatch, value: float, faults: int) -> None:
    given = state(rule(ANY))
    found = run(given, errors(0, 7), second)
    assert [f.value for f in found] == [value]
    assert given.counts["counter_went_back"] == faults


def test_in_the_same_epoch_a_lower_value_is_a_fault_and_no_growth() -> None:
    given = state(rule(ANY))
    assert run(given, errors(0, 7), errors(1, 3)) == []
    assert given.counts["counter_went_back"] == 1
    assert [f.value for f in run(given, errors(2, 4))] == [1]


def test_the_epoch_counts_when_the_counter_is_said_again() -> None:
    given = state(rule(ANY | {"metric": "pcie_replays"}), rule(ANY, name="other"))
    run(given, batch(0, sample("v:1", pcie_replays=7, ecc_uncorrected_volatile_errors=0), boot_id="a"))
    run(given, batch(1, sample("v:1", ecc_uncorrected_volatile_errors=0), boot_id="b"))
    found = run(given, batch(2, sample("v:1", pcie_replays=2, ecc_uncorrected_volatile_errors=0), boot_id="b"))
    assert [(f.rule, f.value) for f in found] == [("odd", 2.0)]
    assert given.counts["counter_went_back"] == 0


def test_growth_over_a_gap_is_growth_now() -> None:
    found = run(state(rule(ANY)), errors(0, 7), errors(5000, 8))
    assert said(found) == [(5000, "odd", True)]
