"""Silence, events, forecasts and services: when their findings begin, repeat, end and expire."""

import pytest

from schemas.flow import Tick
from schemas.telemetry import v1
from streams.operators.detect import events, forecasts, services, silence
from streams.rules import load_rules
from tests.unit.streams.detect.given import TIMES, at, rule, said

RULES = load_rules()


def quiet(*items: silence.Heard | silence.Expected | silence.Excused | Tick) -> list[v1.Finding]:
    return silence.step(silence.start(RULES, 15, TIMES), items)[1]


def heard(seconds: float) -> silence.Heard:
    return silence.Heard("c1", "n1", at(seconds), True)


def ticks(first: int, last: int) -> list[Tick]:
    return [Tick(at(s)) for s in range(first, last)]


def test_a_node_is_silent_after_15_seconds_repeated_every_15_and_speaks_again() -> None:
    found = quiet(heard(0), *ticks(1, 50), heard(50), *ticks(51, 60))
    assert said(found) == [(16, "node_silent", True), (31, "node_silent", True), (46, "node_silent", True), (50, "node_silent", False)]
    assert {f.since_ns for f in found} == {at(0)}
    assert found[0].entity == "node/c1/n1"
    assert found[0].summary == "n1 has been silent for 16 s"
    assert (found[0].value, found[0].limit, found[0].unit, found[0].simulated) == (16, 15, "s", True)


def test_a_node_that_speaks_is_not_silent_whatever_its_clock_says() -> None:
    assert quiet(heard(0), *ticks(0, 14), heard(14), *ticks(14, 29)) == []


def test_an_expected_node_has_its_time_from_the_first_tick_on() -> None:
    assert said(quiet(silence.Expected("c1", "n1"), *ticks(100, 117))) == [(116, "node_silent", True)]


def test_a_node_in_maintenance_is_excused() -> None:
    excused = [silence.Excused("c1", "n1", "nvidia", on, at(1)) for on in (True, False)]
    found = quiet(heard(0), excused[0], *ticks(1, 60), excused[1], Tick(at(60)))
    assert said(found) == [(60, "node_silent", True)]


def test_a_maintenance_that_nobody_repeats_excuses_for_three_minutes() -> None:
    assert said(quiet(heard(0), silence.Excused("c1", "n1", "nvidia", True, at(1)), *ticks(1, 183)))[:1] == [(181, "node_silent", True)]
    reminded = [silence.Excused("c1", "n1", "nvidia", True, at(second)) for second in (1, 61, 121)]
    assert quiet(heard(0), *reminded, *ticks(130, 300)) == []


def event(seconds: float, kind: str, uid: str = "v:1", code: int | None = None, source: str = "nvidia") -> v1.DeviceEvent:
    return v1.DeviceEvent(
        cluster="c1", node="n1", uid=uid, source=source, kind=f"DEVICE_EVENT_KIND_{kind}", at_ns=at(seconds), code=code, text="said so"
    )


def happened(*items: v1.DeviceEvent | events.Seen | Tick) -> list[v1.Finding]:
    return events.step(events.start(RULES, TIMES), items)[1]


def seen(seconds: float, uid: str = "v:1") -> events.Seen:
    return events.Seen("c1", "n1", uid, "nvidia", at(seconds))


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        ([event(0, "LOST"), Tick(at(14)), Tick(at(15)), event(20, "RETURNED")], [(0, True), (15, True), (20, False)]),
        ([event(0, "LOST"), seen(0), seen(3), seen(4)], [(0, True), (3, False)]),
        ([event(0, "LOST"), event(0, "LOST")], [(0, True)]),
        ([event(0, "LOST"), event(5, "RETURNED"), event(0, "LOST")], [(0, True), (5, False)]),
        ([event(5, "RETURNED"), event(0, "LOST")], []),
        ([event(0, "LOST"), seen(9, "v:2"), event(9, "RETURNED", "v:2")], [(0, True)]),
        ([event(0, "LOST"), event(9, "MAINTENANCE", "")], [(0, True), (9, False)]),
        ([event(0, "LOST"), event(9, "MAINTENANCE", "", source="other")], [(0, True)]),
        ([event(0, "LOST"), event(9, "RETURNED"), event(20, "LOST")], [(0, True), (9, False), (20, True)]),
    ],
    ids=["returned", "sampled", "doubled", "late_double", "out_of_order", "another_device", "maintenance", "another_source", "again"],
)
def test_a_lost_device(items: list[v1.DeviceEvent | events.Seen | Tick], wanted: list[tuple[float, bool]]) -> None:
    assert [(s, a) for s, name, a in said(happened(*items)) if name == "device_lost"] == wanted


def test_an_xid_is_an_event_that_is_kept_for_a_day_and_not_for_ever() -> None:
    found = happened(event(0, "XID", code=79), event(1, "XID", code=43), Tick(at(86_399)), Tick(at(86_400)), Tick(at(90_000)))
    assert said(found) == [(0, "xid_critical", True), (86_399, "xid_critical", True), (86_400, "xid_critical", False)]
    assert found[0].value == 79
    assert found[0].summary == "GPU unknown on n1: Xid 79: said so (unknown)"


def test_a_hang_of_the_whole_source_is_of_the_node() -> None:
    found = happened(event(0, "HANG", uid=""), event(8, "RECOVERED", uid=""))
    assert [(f.entity, f.active) for f in found] == [("node/c1/n1", True), ("node/c1/n1", False)]


def forecast(seconds: float, probability: float = 0.9, eta: float | None = 600, current: float = 50, **more: object) -> v1.Forecast:
    return v1.Forecast(
        cluster="c1",
        node="n1",
        entity="device/v:1",
        uid="v:1",
        metric="memory_used_bytes",
        model="holt",
        made_at_ns=at(seconds),
        valid_until_ns=at(seconds + 60),
        limit=100,
        current=current,
        breach_probability_ratio=probability,
        eta_p50_seconds=eta,
        **more,  # type: ignore[arg-type]  # fields of the message
    )


def predicted(*items: v1.Forecast | Tick) -> list[tuple[float, bool]]:
    return [(s, a) for s, _, a in said(forecasts.step(forecasts.start(RULES, TIMES), items)[1])]


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        ([forecast(0)], [(0, True)]),
        ([forecast(0, probability=0.49)], []),
        ([forecast(0, eta=7201)], []),
        ([forecast(0, eta=None)], []),
        ([forecast(0, current=100)], []),
        ([forecast(0, withdrawn=True)], []),
        ([forecast(0), forecast(10, probability=0.35), forecast(20, probability=0.29)], [(0, True), (20, False)]),
        ([forecast(0), forecast(10, withdrawn=True)], [(0, True), (10, False)]),
        ([forecast(0), forecast(10, current=101)], [(0, True), (10, False)]),
        ([forecast(10), forecast(0, withdrawn=True)], [(10, True)]),
        ([forecast(0), *ticks(1, 70)], [(0, True), (15, True), (30, True), (45, True)]),
        ([forecast(0), *ticks(1, 31), forecast(30, probability=0.8), *ticks(31, 46)], [(0, True), (15, True), (30, True), (45, True)]),
    ],
    ids=["near", "unlikely", "far", "no_eta", "reached", "withdrawn", "hysteresis", "recedes", "crossed", "older", "expires", "renewed"],
)
def test_a_prediction(items: list[v1.Forecast | Tick], wanted: list[tuple[float, bool]]) -> None:
    assert predicted(*items) == wanted


def test_a_prediction_says_when_how_likely_and_by_which_model() -> None:
    found = forecasts.step(forecasts.start(RULES, TIMES), [forecast(0, eta_p10_seconds=300, backtest_mase=0.4)])[1][0]
    assert found.rule == "memory_exhaustion_predicted"
    assert found.kind == v1.FindingKind.FINDING_KIND_FORECAST
    assert (found.value, found.limit) == (50, 100)
    assert dict(found.evidence).items() >= {"eta_p50": "10 min", "eta_p10": "5 min", "eta_p90": "beyond", "probability": "90 %"}.items()
    assert "in 10 min, probability 90 %" in found.summary


def test_the_time_to_a_crossing_counts_from_when_the_forecast_was_made_not_from_the_end_of_its_history() -> None:
    late = forecast(0, eta=600, eta_p10_seconds=60, eta_p90_seconds=7_500, history_until_ns=at(-120))
    found = forecasts.step(forecasts.start(RULES, TIMES), [late])[1][0]
    assert {q: found.evidence[f"eta_{q}"] for q in ("p10", "p50", "p90")} == {"p10": "0 s", "p50": "8 min", "p90": "2 h 3 min"}
    assert "in 8 min" in found.summary
    assert predicted(forecast(0, eta=7_300, history_until_ns=at(-120))) == [(0, True)], "within two hours of now"


def test_a_finding_is_never_valid_longer_than_its_forecast() -> None:
    found = forecasts.step(forecasts.start(RULES, TIMES), [forecast(0), Tick(at(50))])[1]
    assert [f.valid_until_ns for f in found] == [at(45), at(60)]


def test_a_prediction_holds_its_evidence_and_its_band() -> None:
    whole = forecast(
        0,
        eta_p10_seconds=300,
        eta_p90_seconds=1200,
        backtest_mase=0.4,
        history_points=45,
        step_ns=60 * 10**9,
        unit="By",
        p05=[51, 60],
        p50=[52, 80],
        p95=[53, 120],
    )
    found = forecasts.step(forecasts.start(RULES, TIMES), [whole])[1][0]
    assert (
        dict(found.evidence).items()
        >= {
            "eta_p10": "5 min",
            "eta_p50": "10 min",
            "eta_p90": "20 min",
            "probability": "90 %",
            "forecast_model": "holt",
            "backtest_mase": "0.4",
            "history_points": "45",
            "history": "45 min",
            "horizon": "2 min",
            "last_p50": "80 B",
        }.items()
    )
    assert (found.expected_low, found.expected_high) == (60, 120)
    assert not found.HasField("score")
    assert not found.recent


def of_rule(when: dict[str, object], *items: v1.Forecast, entity: str = "device") -> list[v1.Finding]:
    chosen = rule({"type": "forecast", "within_seconds": 900} | when, entity=entity)
    return forecasts.step(forecasts.start([chosen], TIMES), items)[1]


@pytest.mark.parametrize(("current", "fires"), [(5.0, True), (0.0, False), (-3.0, False)], ids=["above", "at the limit", "beyond"])
def test_a_prediction_towards_a_limit_from_above(current: float, fires: bool) -> None:
    falling = forecast(0, current=current)
    falling.metric, falling.limit = "temperature_margin_celsius", 0.0
    assert bool(of_rule({"metric": "temperature_margin_celsius", "direction": "below"}, falling)) == fires


def test_a_rate_is_said_as_one() -> None:
    growing = forecast(0, current=11, unit="{error}/min")
    growing.metric, growing.limit = "ecc_corrected_volatile_errors", 25.0
    found = of_rule({"metric": "ecc_corrected_volatile_errors"}, growing)[0]
    assert (found.unit, found.evidence["value"], found.evidence["limit"]) == ("{error}/min", "11 a minute", "25 a minute")


def of_service(seconds: float, node: str, **more: object) -> v1.Forecast:
    said_of = forecast(seconds, current=0.8, **more)  # type: ignore[arg-type]  # as above
    said_of.entity, said_of.uid, said_of.metric, said_of.limit, said_of.node = "service/c1/prod/chat", "", "kv_cache_used_ratio", 1.0, node
    return said_of


def test_a_prediction_about_a_service() -> None:
    found = of_rule({"metric": "kv_cache_used_ratio"}, of_service(0, "n1"), entity="service")[0]
    assert (found.entity, found.evidence["value"], found.evidence["limit"]) == ("service/c1/prod/chat", "80 %", "100 %")


def test_a_forecaster_that_sees_other_instances_of_a_service_takes_nothing_back() -> None:
    """A service may span nodes of several forecasters: who raised it takes it back, and the others neither end it nor say it again."""
    items = [of_service(0, "n1"), of_service(5, "n2", withdrawn=True), of_service(6, "n2"), of_service(10, "n1", withdrawn=True)]
    found = of_rule({"metric": "kv_cache_used_ratio"}, *items, entity="service")
    assert [(s, f.node, a) for (s, _, a), f in zip(said(found), found, strict=True)] == [(0, "n1", True), (10, "n1", False)]


def window(seconds: float, waiting: float | None, pod: str = "p1", node: str = "n1") -> v1.InferenceWindow:
    made = v1.InferenceWindow(cluster="c1", node=node, started_at_ns=at(seconds - 10), ended_at_ns=at(seconds), requests_waiting=waiting)
    made.workload.CopyFrom(v1.Workload(namespace="prod", service="chat", pod=pod))
    return made


def test_a_service_is_as_bad_as_its_worst_instance() -> None:
    given = services.start([rule({"type": "above", "metric": "requests_waiting", "limit": 64}, entity="service")], TIMES)
    found = services.step(given, [window(0, 100), window(1, 0, "p2"), window(20, 0, "p2"), window(21, 3), window(22, None, "p2")])[1]
    assert said(found) == [(0, "odd", True), (20, "odd", True), (21, "odd", False)]
    assert found[0].entity == "service/c1/prod/chat"
    assert found[1].value == 100
    assert found[0].owner.service == "chat"
    assert found[0].valid_until_ns == at(45)


def test_a_window_is_taken_once_and_one_without_a_name_is_counted() -> None:
    given = services.start(RULES, TIMES)
    nameless = window(0, 100)
    nameless.workload.service = ""
    services.step(given, [window(0, 100), window(0, 100), nameless])
    assert given.counts == {"old_window": 1, "nameless": 1}
