"""What else is followed than memory and heat: margins, counters, services; and what is no news: resets, replaced and resized devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from forecasting import targets
from forecasting.settings import Forecasting
from forecasting.targets import Target
from schemas import topics
from schemas.catalogue import BY_NAME
from schemas.flow import Record
from tests.unit.forecasting import shapes
from tests.unit.forecasting.fleet import SECOND, START_NS, Run, batch, record, window
from tests.unit.forecasting.shapes import Floats

MINUTE = 60


def only(*chosen: Target) -> Forecasting:
    return Forecasting(workers=0, targets=chosen)


def minutes(run: Run, metric: str, values: Floats, uid: str = "sim:a") -> None:
    run.feed({uid: {metric: values}}, step_seconds=MINUTE)


def ramp(before: int, rise: int, low: float, high: float, sigma: float, seed: int = 1) -> Floats:
    """Flat at `low`, then to `high` over `rise` steps."""
    t = np.arange(before + rise)
    out: Floats = low + (high - low) * np.clip((t - before) / rise, 0, 1) + np.random.default_rng(seed).normal(0, sigma, t.size)
    return out


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"metric": "memory_usage"}, "memory_usage"),
        ({"metric": "kv_cache_used_ratio", "limit_metric": "memory_total_bytes"}, "of a service"),
        ({"metric": "power_watts", "quantity": "per_minute"}, "no counter"),
        ({"metric": "throttle_reasons"}, "set of bits"),
        ({"metric": "temperature_margin_celsius", "limit_value": 0.0, "direction": "below"}, "scale_value"),
    ],
    ids=["unknown", "service", "gauge as rate", "bits", "limit of zero"],
)
def test_a_target_that_cannot_be_meant_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Target(**values)


def test_one_metric_has_one_limit() -> None:
    with pytest.raises(ValidationError, match="memory_used_bytes more than once"):
        Forecasting(targets=(targets.MEMORY, targets.MEMORY))


def test_the_built_in_targets_are_those_of_the_issue() -> None:
    followed = {target.metric: target.unit for target in Forecasting().targets}
    assert followed == {
        "memory_used_bytes": "By",
        "temperature_celsius": "Cel",
        "memory_temperature_celsius": "Cel",
        "temperature_margin_celsius": "Cel",
        "power_watts": "W",
        "ecc_corrected_volatile_errors": "{error}/min",
        "pcie_replays": "{replay}/min",
        "remapped_rows_uncorrectable": "{row}",
        "kv_cache_used_ratio": "1",
        "requests_waiting": "{request}",
    }


def test_what_has_a_longer_step_has_a_history_and_rounds_of_its_own() -> None:
    fast, slow = Forecasting().of_steps()
    assert (fast.step_seconds, fast.every_seconds, len(fast.targets)) == (60.0, 60.0, 9)
    assert (slow.step_seconds, slow.every_seconds, [t.metric for t in slow.targets]) == (3600.0, 3600.0, ["remapped_rows_uncorrectable"])
    assert fast.max_series + slow.max_series <= Forecasting().max_series


def test_a_margin_that_shrinks_is_foretold_from_above() -> None:
    run = Run(only(targets.THERMAL_MARGIN), limits={"temperature_slowdown_celsius": None})
    minutes(run, "temperature_margin_celsius", np.round(ramp(40, 40, 20.0, -2.0, 0.2)))
    said = run.breaches[0].forecast
    assert (said.limit, said.unit) == (0.0, "Cel")
    assert said.p05[-1] <= said.p50[-1] <= said.p95[-1] < said.current
    crossing = 40 + 40 * 20 / 22
    assert 40 < run.breaches[0].at_seconds / MINUTE < crossing - 10
    assert [one.forecast.withdrawn_reason for one in run.withdrawals] == ["breached"]


def test_a_margin_that_recovers_is_taken_back() -> None:
    run = Run(only(targets.THERMAL_MARGIN), limits={"temperature_slowdown_celsius": None})
    minutes(run, "temperature_margin_celsius", np.r_[np.round(ramp(40, 24, 20.0, 6.0, 0.2)), np.full(10, 25.0)])
    assert run.breaches
    assert [one.forecast.withdrawn_reason for one in run.withdrawals] == ["recovered"]


def test_the_margin_is_left_to_the_temperature_where_the_device_tells_its_limit() -> None:
    run = Run(only(targets.THERMAL_MARGIN))
    minutes(run, "temperature_margin_celsius", np.round(ramp(40, 40, 20.0, -2.0, 0.2)))
    assert run.said == []


def test_hbm_is_held_against_its_own_limit() -> None:
    run = Run(only(targets.MEMORY_TEMPERATURE), limits={"temperature_memory_max_celsius": 105.0})
    minutes(run, "memory_temperature_celsius", np.round(ramp(60, 50, 90.0, 107.0, 0.2)))
    assert {one.forecast.limit for one in run.breaches} == {105.0}


def test_power_is_only_said_where_it_goes_to_its_limit() -> None:
    run = Run(only(targets.POWER), limits={"power_limit_watts": 700.0})
    run.feed(
        {"sim:a": {"power_watts": ramp(60, 50, 560.0, 700.0, 2.0)}, "sim:b": {"power_watts": ramp(109, 1, 300.0, 300.0, 2.0)}},
        step_seconds=60,
    )
    assert {one.forecast.uid for one in run.said} == {"sim:a"}
    assert run.breaches[0].forecast.limit == pytest.approx(686.0)


def counted(rates: Floats, seed: int) -> Floats:
    """A counter that grows by Poisson numbers of mean `rates` a step."""
    out: Floats = 1000 + np.cumsum(np.random.default_rng(seed).poisson(rates)).astype(np.float64)
    return out


@pytest.mark.parametrize("seed", range(2))
def test_a_growing_error_rate_is_foretold(seed: int) -> None:
    run = Run(only(targets.ECC_CORRECTED))
    minutes(run, "ecc_corrected_volatile_errors", counted(np.r_[np.full(60, 0.2), np.linspace(0.2, 40, 120)][:150], seed))
    said = run.breaches[0]
    assert (said.forecast.unit, said.forecast.limit) == ("{error}/min", 25.0)
    crossing = 60 + 120 * 25 / 40
    assert said.at_seconds / MINUTE < crossing - 10
    assert said.forecast.current < 25


@pytest.mark.parametrize("seed", range(2))
def test_steady_errors_are_not_foretold(seed: int) -> None:
    run = Run(only(targets.ECC_CORRECTED, targets.PCIE_REPLAYS))
    rates = np.full(120, 6.0)
    series = {"ecc_corrected_volatile_errors": counted(rates, seed), "pcie_replays": counted(rates, seed + 100)}
    run.feed({"sim:a": series}, step_seconds=MINUTE)
    assert run.breaches == []


def test_a_counter_that_begins_again_is_no_fall_and_no_burst() -> None:
    run = Run(only(targets.ECC_CORRECTED))
    minutes(run, "ecc_corrected_volatile_errors", counted(np.full(90, 3.0), 1))
    run.boot_id = "after the reset"
    minutes(run, "ecc_corrected_volatile_errors", counted(np.full(60, 3.0), 2) - 1000)
    assert run.said == []
    history = run.processor._groups[0].devices
    assert history is not None
    device = history.device("c0", "n0", "sim:a")
    assert device is not None
    rates = history.snapshot([device], 0, START_NS + run.second * SECOND).values[0]
    known = rates[np.isfinite(rates)]
    assert known.size > 140
    assert known.max() < 9


def test_a_counter_that_falls_in_its_epoch_is_a_fault_and_counts_nothing() -> None:
    counter = counted(np.full(90, 3.0), 1)
    counter[60] = 0
    run = Run(only(targets.ECC_CORRECTED))
    minutes(run, "ecc_corrected_volatile_errors", counter[:61])
    assert run.said == []


def test_remapped_rows_are_followed_by_the_hour() -> None:
    rows = np.r_[np.full(30, 60.0), np.linspace(60, 540, 40)]
    run = Run(only(targets.REMAPPED_ROWS).of_steps()[0])
    run.feed({"sim:a": {"remapped_rows_uncorrectable": np.repeat(rows, 1)}}, step_seconds=3600)
    said = run.breaches[0]
    assert (said.forecast.unit, said.forecast.limit, said.forecast.step_ns) == ("{row}", 512.0, 3600 * SECOND)
    crossing = 30 + 40 * (512 - 60) / 480
    assert said.at_seconds / 3600 < crossing - 6
    assert said.forecast.eta_p50_seconds > 3600


def test_a_partitioned_or_resized_device_is_another_series() -> None:
    """What is left of the card after a MIG reconfiguration says nothing of what was before: no finding, and what stood is taken back."""
    y = shapes.leak(80, 20, 60, 1)[:45]
    run = Run()
    run.feed({"sim:a": {"memory_used_bytes": y}})
    assert run.processor.standing == 1
    run.limits = {"memory_total_bytes": int(77e9)}
    run.second = 60  # its next full sample
    run.feed({"sim:a": {"memory_used_bytes": np.full(30, y[-1])}})
    assert [one.forecast.withdrawn_reason for one in run.withdrawals] == ["reshaped"]
    assert run.processor.dropped["reshaped"] >= 1
    assert not [one for one in run.breaches if one.at_seconds > 61]


def test_partitioning_that_is_switched_on_is_another_series() -> None:
    run = Run(limits={"partitioning_enabled": False})
    run.feed({"sim:a": {"memory_used_bytes": shapes.leak(80, 20, 60, 1)[:45]}})
    run.limits = {"partitioning_enabled": True}
    run.second = 60
    run.feed({"sim:a": {"memory_used_bytes": np.full(20, 73e9)}})
    assert [one.forecast.withdrawn_reason for one in run.withdrawals] == ["reshaped"]


def test_a_replaced_device_begins_anew() -> None:
    run = Run()
    run.feed({"sim:old": {"memory_used_bytes": shapes.leak(80, 20, 60, 1)[:45]}})
    run.feed({"sim:new": {"memory_used_bytes": shapes.flat(30, 1)}})
    assert {one.forecast.uid for one in run.breaches} == {"sim:old"}
    assert [(one.forecast.uid, one.forecast.withdrawn_reason) for one in run.withdrawals] == [("sim:old", "signal_lost")]


def serve(run: Run, values: Floats, metric: str = "kv_cache_used_ratio", **other: Floats) -> None:
    """A window of chat-1 each minute, and of another instance on another node."""
    for i, value in enumerate(values):
        at_ns = START_NS + run.second * SECOND
        for pod, series in other.items():
            other_pod = window(at_ns, pod=pod, node=f"n-{pod}")
            setattr(other_pod, metric, series[i])
            assert not run.processor.process([record(other_pod)])
        own = window(at_ns)
        setattr(own, metric, value)
        run.give(own, MINUTE)


def test_a_kv_cache_that_fills_is_foretold_for_the_service() -> None:
    run = Run(only(targets.KV_CACHE))
    serve(run, np.clip(ramp(40, 50, 0.6, 1.02, 0.002), 0, 1))
    said = run.breaches[0].forecast
    assert (said.entity, said.uid, said.node, said.cluster, said.unit) == ("service/c0/prod/chat", "", "n0", "c0", "1")
    assert max(said.p95) <= 1.0
    assert run.breaches[0].at_seconds / MINUTE < 40 + 50 * 0.4 / 0.42 - 10
    assert run.withdrawals[-1].forecast.withdrawn_reason == "breached"


def test_a_service_is_as_full_as_its_fullest_instance_and_speaks_with_one_voice() -> None:
    run = Run(only(targets.KV_CACHE))
    serve(run, np.full(80, 0.3), b=np.clip(ramp(40, 40, 0.6, 0.95, 0.002), 0, 1))
    assert {(one.forecast.entity, one.forecast.node) for one in run.said} == {("service/c0/prod/chat", "n-b")}
    assert run.said[-1].forecast.current > 0.9


def test_after_a_restart_a_service_s_standing_forecast_is_found_again() -> None:
    run = Run(only(targets.KV_CACHE))
    serve(run, np.clip(ramp(40, 35, 0.6, 0.9, 0.002), 0, 1))
    assert run.processor.standing == 1
    run.restart()
    assert run.processor.standing == 1
    for i in range(24):
        at_ns = START_NS + run.second * SECOND
        run.processor.process([record(window(at_ns, pod="c", node="elsewhere", kv_cache_used_ratio=0.1))])
        run.give(window(at_ns + SECOND, kv_cache_used_ratio=0.5 + 0.001 * i), MINUTE)
    assert [(one.forecast.withdrawn_reason, one.forecast.node) for one in run.withdrawals] == [("recovered", "n0")]


def test_a_queue_is_forecast_without_a_limit_and_breaches_only_a_set_one() -> None:
    longer = ramp(40, 50, 5.0, 90.0, 0.5)
    without, limited = Run(only(targets.QUEUE)), Run(only(targets.QUEUE.model_copy(update={"limit_value": 64.0})))
    for run in (without, limited):
        serve(run, longer, "requests_waiting")
    assert without.said
    assert not any(one.forecast.HasField("limit") or one.forecast.HasField("breach_probability_ratio") for one in without.said)
    assert limited.breaches[0].forecast.limit == 64.0


def test_windows_that_name_no_service_or_come_twice_are_counted() -> None:
    run = Run(only(targets.KV_CACHE))
    nameless = window(START_NS, kv_cache_used_ratio=0.5)
    nameless.workload.service = ""
    twice = window(START_NS, kv_cache_used_ratio=0.5)
    run.processor.process([record(nameless), record(twice), record(twice)])
    assert run.processor.dropped == {"nameless_window": 1, "old_window": 1}
    assert run.processor.services == 1


def test_services_of_other_workers_nodes_are_let_go() -> None:
    run = Run(only(targets.KV_CACHE))
    serve(run, np.full(30, 0.5))
    run.processor.restore(run.topic, frozenset())
    assert run.processor.services == 0


def test_every_device_target_is_a_reading_that_the_catalogue_bounds() -> None:
    """Bounds come from the catalogue or are those of a rate: nothing is forecast beyond what can be."""
    for target in targets.BUILT_IN:
        assert target.range[0] is not None
        assert target.of_service or BY_NAME[target.metric].kind in ("gauge", "counter")


def test_a_forecast_of_a_metric_that_is_followed_no_more_is_taken_back() -> None:
    run = Run()
    run.feed({"sim:a": {"memory_used_bytes": shapes.leak(45, 20, 60, 1)}})
    assert run.processor.standing == 1
    run.settings = run.settings.model_copy(update={"targets": (targets.CORE_TEMPERATURE, targets.KV_CACHE)})
    run.restart()
    run.feed({"sim:a": {"temperature_celsius": np.full(3, 50.0)}})
    assert [(one.forecast.metric, one.forecast.withdrawn_reason) for one in run.withdrawals] == [("memory_used_bytes", "signal_lost")]


def test_a_late_counter_reading_counts_nothing_twice() -> None:
    run = Run(only(targets.ECC_CORRECTED))
    counter = counted(np.full(30, 3.0), 1)
    minutes(run, "ecc_corrected_volatile_errors", counter)
    late = batch(START_NS + 10 * MINUTE * SECOND, {"sim:a": {"ecc_corrected_volatile_errors": counter[10]}}, sequence=10)
    run.processor.process([record(late)])
    minutes(run, "ecc_corrected_volatile_errors", counter[-1] + counted(np.full(30, 3.0), 2) - 1000)
    history = run.processor._groups[0].devices
    assert history is not None
    device = history.device("c0", "n0", "sim:a")
    assert device is not None
    rates = history.snapshot([device], 0, START_NS + run.second * SECOND).values[0]
    assert np.nanmax(rates) < 9


def test_an_inference_record_that_is_ahead_of_the_broker_is_not_believed() -> None:
    run = Run(only(targets.KV_CACHE))
    early = record(window(START_NS + 3600 * SECOND, kv_cache_used_ratio=0.5))._replace(timestamp_ns=START_NS)
    assert isinstance(early, Record)
    assert early.topic == topics.INFERENCE
    run.processor.process([early])
    assert run.processor.dropped == {"future": 1}
