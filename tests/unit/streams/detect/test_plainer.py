"""One fault makes few findings: what a plainer rule, an event or a forecast says is not raised again, and related signals are one."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from schemas.telemetry import v1
from streams.operators.detect import samples
from streams.operators.detect.samples import Samples, Standing
from streams.operators.detect.scoring import DETECTORS as NAMES
from streams.rules import load_rules
from tests.unit.streams.detect.given import DETECTORS, GIB, TIMES, at, batch, rule, run, said, sample, state

RULES = {rule.name: rule for rule in load_rules()}
ANOMALY = {"type": "anomaly", "metrics": ["power_watts", "temperature_celsius", "memory_used_bytes"]}
CALM, STEP = 300, 10
"""Points before something happens, which the ensemble learns from, and their distance in seconds."""


def calm(given: Samples, **more: Any) -> list[v1.Finding]:
    return run(given, *[card(n, **more) for n in range(CALM)])


def card(n: int, power: float = 500.0, celsius: float = 60.0, used: int = 40, **more: Any) -> v1.SampleBatch:
    wave = math.sin(n)
    values: dict[str, Any] = {"power_watts": power + 5 * wave, "temperature_celsius": celsius + wave, "memory_used_bytes": used * GIB}
    return batch(STEP * n, sample("v:1", index=3, **values, **more))


def test_related_signals_of_a_device_are_one_finding_with_band_shape_score_and_detector() -> None:
    given = state(rule(ANOMALY))
    assert calm(given) == []
    (found,) = run(given, card(CALM, power=90.0, celsius=20.0))
    assert found.active
    assert found.metric in ("power_watts", "temperature_celsius")
    assert found.evidence["also"].split()[0] in ("power_watts", "temperature_celsius")
    assert found.detector in NAMES
    assert found.detector == found.evidence["detector"]
    assert 0.5 < found.score < 1.0
    assert found.value < found.expected_low < found.expected_high
    assert found.limit == found.expected_low
    assert (len(found.recent), found.recent_step_ns) == (30, 10_000_000_000)
    assert found.recent[-1] == pytest.approx(found.value)
    assert found.since_ns == at(STEP * CALM)
    assert found.kind == v1.FindingKind.FINDING_KIND_ANOMALY


def test_it_clears_by_itself_when_the_value_is_back() -> None:
    given = state(rule(ANOMALY))
    calm(given)
    found = run(given, card(CALM, power=90.0), *[card(n) for n in range(CALM + 1, CALM + 300)])
    assert (found[0].active, found[-1].active) == (True, False)


THROTTLE = {"type": "bit_set", "metric": "throttle_reasons", "bits": ["hardware_thermal"]}


def test_an_anomaly_that_a_plainer_rule_says_is_not_raised() -> None:
    given = state(rule(ANOMALY, "odd"), rule(THROTTLE, "throttled"))
    calm(given, throttle_reasons=0)
    found = run(given, *[card(n, power=200.0, celsius=95.0, throttle_reasons=1 << 6) for n in range(CALM, CALM + 20)])
    assert {f.rule for f in found} == {"throttled"}


def test_of_another_family_it_is_raised_all_the_same() -> None:
    given = state(rule(ANOMALY, "odd"), rule(THROTTLE, "throttled"))
    calm(given, throttle_reasons=0)
    found = run(given, card(CALM, celsius=95.0, used=75, throttle_reasons=1 << 6))
    assert {f.rule: f.metric for f in found} == {"odd": "memory_used_bytes", "throttled": "throttle_reasons"}


def test_what_stands_already_is_not_ended_by_a_plainer_rule() -> None:
    given = state(rule(ANOMALY, "odd"), rule(THROTTLE, "throttled"))
    calm(given, throttle_reasons=0)
    first = run(given, card(CALM, celsius=95.0, throttle_reasons=0))
    later = run(given, *[card(n, celsius=95.0, throttle_reasons=1 << 6) for n in range(CALM + 1, CALM + 5)])
    assert said(first) == [(STEP * CALM, "odd", True)]
    assert all(f.active for f in later)


@pytest.mark.parametrize(
    ("standing", "raised"),
    [
        (Standing("xid_critical"), False),
        (Standing("temperature_limit_predicted", "temperature_celsius"), False),
        (Standing("memory_exhaustion_predicted", "memory_used_bytes"), True),
        (None, True),
    ],
    ids=["event", "forecast_of_it", "forecast_of_another", "nothing"],
)
def test_events_and_forecasts_speak_for_it(standing: Standing | None, raised: bool) -> None:
    given = state(rule(ANOMALY))
    given.standing = lambda _: () if standing is None else (standing,)
    calm(given)
    assert bool(run(given, card(CALM, celsius=95.0))) is raised


def test_a_burst_is_left_to_the_rule_with_a_limit() -> None:
    given = state(RULES["error_burst"], RULES["ecc_corrected_burst"])
    quiet = [batch(60 * n, sample("v:1", ecc_corrected_volatile_errors=0)) for n in range(60)]
    found = run(given, *quiet, batch(3600, sample("v:1", ecc_corrected_volatile_errors=500)))
    assert said(found) == [(3600, "ecc_corrected_burst", True)]


def test_a_burst_says_what_was_expected_in_what_time() -> None:
    given = state(RULES["error_burst"])
    quiet = [batch(60 * n, sample("v:1", pcie_replays=7)) for n in range(60)]
    (found,) = run(given, *quiet, batch(3600, sample("v:1", pcie_replays=67)))
    assert (found.value, found.unit, found.metric, found.detector) == (60.0, "{replay}", "pcie_replays", "burst")
    assert found.expected_high < 60.0
    assert found.limit == found.expected_high
    assert found.evidence["within"] == "60 s"
    assert found.kind == v1.FindingKind.FINDING_KIND_THRESHOLD, "no deploy explains an error of the hardware"


WANTED = (RULES["recovery_wanted"], RULES["row_remap_pending"])


def test_a_card_that_asks_for_recovery_while_all_is_well_says_so() -> None:
    (found,) = run(state(*WANTED), batch(0, sample("v:1", recovery_action=1, remapped_rows_pending=False)))
    assert (found.rule, found.evidence["beside"]) == ("recovery_wanted", "nothing else is wrong with it")


def test_where_something_else_asks_for_the_same_it_is_not_raised() -> None:
    asks = sample("v:1", recovery_action=1, remapped_rows_pending=True)
    assert [f.rule for f in run(state(*WANTED), batch(0, asks))] == ["row_remap_pending"]
    given = state(*WANTED)
    given.standing = lambda _: (Standing("xid_critical"),)
    assert run(given, batch(0, sample("v:1", recovery_action=1))) == []


def test_it_is_raised_once_the_other_is_over_and_the_wish_is_not() -> None:
    given = state(*WANTED)
    run(given, batch(0, sample("v:1", recovery_action=1, remapped_rows_pending=True)))
    found = run(given, batch(1, sample("v:1", recovery_action=1, remapped_rows_pending=False)), batch(2, sample("v:1", recovery_action=1)))
    assert said(found) == [(1, "row_remap_pending", False), (2, "recovery_wanted", True)]


def listed(seconds: float, processes: int | None, used: int = 600 * 2**20, busy: float = 1.0) -> v1.SampleBatch:
    made = batch(seconds, sample("v:1", utilization_ratio=busy, memory_used_bytes=used))
    if processes is not None:
        made.processes_taken = True
        for pid in range(processes):
            made.processes.add(device_uid="v:1", pid=pid)
    return made


@pytest.mark.parametrize(
    ("made", "ghost"),
    [
        (listed(0, 0), True),
        (listed(0, 1), False),
        (listed(0, None), False),
        (listed(0, None, used=4 * 2**20), True),
        (listed(0, 0, used=4 * GIB), False),
        (listed(0, 0, busy=0.5), False),
    ],
    ids=["nobody", "a_process", "not_known", "not_known_and_empty", "holds_memory", "half_busy"],
)
def test_a_ghost_is_busy_for_nobody_with_nothing_in_memory(made: v1.SampleBatch, ghost: bool) -> None:
    assert [f.rule for f in run(state(RULES["ghost_card"]), made)] == ["ghost_card"] * ghost


def test_a_card_that_somebody_holds_is_no_ghost() -> None:
    given = state(RULES["ghost_card"])
    given.owner = lambda _: v1.Workload(namespace="prod", pod="p1")
    assert run(given, listed(0, 0)) == []


def test_a_list_that_could_not_be_read_of_a_device_says_nothing_of_it_and_a_list_is_held_for_a_minute() -> None:
    unknown = listed(0, 0)
    unknown.processes_unknown.append("v:1")
    given = state(RULES["ghost_card"])
    assert run(given, unknown) == []
    assert said(run(given, listed(1, 0), listed(2, None))) == [(1, "ghost_card", True)]
    assert said(run(given, listed(90, None))) == [(90, "ghost_card", False)]


def test_what_is_read_once_a_minute_stays_odd_between_its_readings() -> None:
    """A finding that nobody repeats is over: it would begin again with each reading."""
    given = state(rule({"type": "anomaly", "metrics": ["power_limit_watts"], "score": 0.9, "clear_score": 0.5}))
    found: list[v1.Finding] = []
    for n in range(1400):
        slow: dict[str, Any] = {"power_limit_watts": 350.0 if n >= 1200 else 700.0} if n % 6 == 0 else {}
        found += run(given, batch(STEP * n, sample("v:1", power_watts=300.0, **slow)))
    assert found[0].observed_at_ns == at(12_000)
    assert found[0].value == 350.0
    assert all(f.active for f in found)
    assert len({f.since_ns for f in found}) == 1
    assert all(later.observed_at_ns <= earlier.valid_until_ns for earlier, later in itertools.pairwise(found))
    assert found[-1].valid_until_ns >= at(13_990)


def test_a_ghost_ends_when_it_is_idle() -> None:
    found = run(state(RULES["ghost_card"]), listed(0, 0), listed(1, 0, busy=0.9), listed(2, 0, busy=0.1))
    assert said(found) == [(0, "ghost_card", True), (2, "ghost_card", False)]
    assert (found[0].evidence["processes"], found[0].evidence["memory"]) == ("none", "600.0 MiB")


def test_metrics_that_do_not_go_together_are_a_finding_of_no_metric() -> None:
    metrics = ["power_watts", "temperature_celsius", "sm_active_ratio", "memory_used_bytes"]
    given = samples.start([rule({"type": "residual", "metrics": metrics}, summary="{value} {detector}")], DETECTORS, TIMES)
    found: list[v1.Finding] = []
    for n in range(450):
        load = 0.5 + 0.3 * math.sin(n / 20)
        values: dict[str, Any] = {"power_watts": 100 + 500 * load, "temperature_celsius": 35 + 30 * load, "sm_active_ratio": load}
        values["temperature_celsius"] += 15.0 if n >= 440 else 0.1 * math.sin(7 * n)
        found += run(given, batch(STEP * n, sample("v:1", memory_used_bytes=40 * GIB, **values)))
    assert found[0].observed_at_ns == at(4400)
    assert (found[0].metric, found[0].unit, found[0].detector, found[0].active) == ("", "", "residual", True)
    assert found[0].value > found[0].expected_high
