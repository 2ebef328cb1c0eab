"""Every built-in rule fires on what it is for, and on nothing that is well (peers.md D6: rules that never fired, and those that cried)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from schemas.flow import Tick
from schemas.telemetry import v1
from streams.operators.detect import events, fleetwide, forecasts, services, silence
from streams.operators.detect.peers import Peers
from streams.operators.detect.peerstats import TOLD
from streams.rules import load_rules
from tests.unit.streams.detect.given import GIB, TIMES, at, batch, run, said, sample, state

RULES = {rule.name: rule for rule in load_rules()}
NOT_SUPPORTED = v1.AbsenceReason.ABSENCE_REASON_NOT_SUPPORTED
Values = Mapping[str, Any]

LIMITS: Values = {"temperature_slowdown_celsius": 87.0, "pcie_link_width_max": 16, "memory_total_bytes": 80 * GIB}
"""What a card says of itself beside its readings."""

BY_SAMPLE: Mapping[str, tuple[Values, Values]] = {
    "memory_nearly_full": ({"memory_used_bytes": 75 * GIB}, {"memory_used_bytes": 77 * GIB}),
    "temperature_near_slowdown": ({"temperature_celsius": 82.0}, {"temperature_celsius": 82.5}),
    "thermal_throttle": ({"throttle_reasons": 1 << 2 | 1}, {"throttle_reasons": 1 << 6}),
    "power_brake": ({"throttle_reasons": 1 << 2}, {"throttle_reasons": 1 << 7}),
    "ecc_uncorrected": ({"ecc_uncorrected_volatile_errors": 3}, {"ecc_uncorrected_volatile_errors": 4}),
    "ecc_corrected_burst": ({"ecc_corrected_volatile_errors": 1000}, {"ecc_corrected_volatile_errors": 1101}),
    "row_remap_failed": ({"remapped_rows_failed": False}, {"remapped_rows_failed": True}),
    "row_remap_pending": ({"remapped_rows_pending": False}, {"remapped_rows_pending": True}),
    "ecc_sram_threshold": ({"ecc_sram_threshold_exceeded": False}, {"ecc_sram_threshold_exceeded": True}),
    "row_remap_exhausted": ({"remapped_row_banks_exhausted": 0}, {"remapped_row_banks_exhausted": 1}),
    "page_retirement_pending": ({"retired_pages_pending": False}, {"retired_pages_pending": True}),
    "recovery_wanted": ({"recovery_action": 0}, {"recovery_action": 1}),
    "pcie_link_degraded": (
        {"pcie_link_width": 8, "utilization_ratio": 0.0},
        {"pcie_link_width": 8, "utilization_ratio": 0.5},
    ),
    "pcie_replays_many": ({"pcie_replays": 10}, {"pcie_replays": 135}),
    "fabric_not_joined": ({"fabric_state": 3}, {"fabric_state": 1}),
    "fabric_failed": ({"fabric_state": 3}, {"fabric_state": 4}),
    "interconnect_errors": ({"interconnect_errors": 7}, {"interconnect_errors": 8}),
}
"""What is well, and what is one step worse and not."""


def happened(kind: str, severity: str = "CRITICAL", event_class: str = "HARDWARE", **more: Any) -> list[v1.Finding]:
    said_of = v1.DeviceEvent(
        cluster="c1",
        node="n1",
        uid="v:1",
        source="nvidia",
        kind=f"DEVICE_EVENT_KIND_{kind}",
        at_ns=at(0),
        severity=f"SEVERITY_{severity}",
        event_class=f"EVENT_CLASS_{event_class}",
        text="said so",
        **more,
    )
    return events.step(events.start(list(RULES.values()), TIMES), [said_of])[1]


def predicted(metric: str, *, limit: float = 100, current: float = 50, entity: str = "device/v:1", unit: str = "") -> list[v1.Finding]:
    said_of = v1.Forecast(
        cluster="c1",
        node="n1",
        entity=entity,
        uid=entity.removeprefix("device/") if entity.startswith("device/") else "",
        metric=metric,
        unit=unit,
        model="holt",
        made_at_ns=at(0),
        valid_until_ns=at(60),
        limit=limit,
        current=current,
        breach_probability_ratio=0.9,
        eta_p50_seconds=600,
    )
    return forecasts.step(forecasts.start(list(RULES.values()), TIMES), [said_of])[1]


def waiting() -> list[v1.Finding]:
    window = v1.InferenceWindow(cluster="c1", node="n1", started_at_ns=at(-10), ended_at_ns=at(0), requests_waiting=65)
    window.workload.CopyFrom(v1.Workload(namespace="prod", service="chat", pod="p1"))
    return services.step(services.start([RULES["service_queue_long"]], TIMES), [window])[1]


def unusual() -> list[v1.Finding]:
    calm = [batch(10 * s, sample("v:1", power_watts=500.0 + s % 3)) for s in range(300)]
    return run(state(RULES["device_anomaly"]), *calm, batch(3000, sample("v:1", power_watts=90.0)))


def capped() -> list[v1.Finding]:
    calm = [batch(10 * s, sample("v:1", power_limit_watts=700.0)) for s in range(300)]
    return run(state(*RULES.values()), *calm, batch(3000, sample("v:1", power_limit_watts=350.0)))


def warming() -> list[v1.Finding]:
    """A card that was busy and idle, and then is idle and not cool."""
    cards = [sample("v:1", power_watts=400.0 + 100 * (s // 20 % 2), temperature_celsius=50.0 + 5 * (s // 20 % 2)) for s in range(400)]
    warm = [sample("v:1", power_watts=400.0, temperature_celsius=64.0) for _ in range(2)]
    return run(state(*RULES.values()), *(batch(10 * s, one) for s, one in enumerate([*cards, *warm])))[:1]


def bursting() -> list[v1.Finding]:
    clean = [batch(60 * s, sample("v:1", ecc_corrected_volatile_errors=0)) for s in range(30)]
    return run(state(*RULES.values()), *clean, batch(1800, sample("v:1", ecc_corrected_volatile_errors=60)))


def beside(metric: str, odd: float) -> list[v1.Finding]:
    """Four busy cards of one node for five minutes, one of which is odd."""
    like: Values = {
        "utilization_ratio": 0.9,
        "sm_active_ratio": 0.7,
        "throttle_reasons": 0,
        "sm_clock_hertz": 1.9e9,
        "temperature_celsius": 60.0,
    }
    found: list[v1.Finding] = []
    given = state(*RULES.values())
    for s in range(0, 300, 10):
        cards = [sample(f"v:{i}", info=v1.DeviceInfo(model="H100"), index=i, **like) for i in range(4)]
        setattr(cards[2], metric, odd)
        found += run(given, batch(s, *cards))
    assert {f.entity for f in found} == {"device/v:2"}
    return found[:1]


def far() -> list[v1.Finding]:
    """Four nodes of four cards, all cards of one of which are slow."""
    found: list[v1.Finding] = []
    given = fleetwide.start(list(RULES.values()), Peers(), TIMES)
    for s in range(0, 300, 10):
        for node in ("n1", "n2", "n3", "n4"):
            clock = 1.4e9 if node == "n3" else 1.9e9
            cards = [sample(f"{node}:{i}", index=i) for i in range(4)]
            told = v1.PeerStats(cluster="c1", node=node, model="H100", taken_at_ns=at(s), metric=TOLD)
            known = {"sm_clock_hertz": clock, "utilization_ratio": 0.9, "power_limit_watts": 700.0}
            for card in cards:
                told.devices.add(uid=card.uid, mean=[known.get(name, float("nan")) for name in TOLD])
            found += fleetwide.step(given, [told])[1]
    assert {f.node for f in found} == {"n3"}
    return found[:1]


def ghost() -> list[v1.Finding]:
    return run(state(*RULES.values()), batch(0, sample("v:1", utilization_ratio=1.0, memory_used_bytes=4 * 2**20)))


def silent() -> list[v1.Finding]:
    heard: list[silence.Heard | Tick] = [silence.Heard("c1", "n1", at(0), True), Tick(at(16))]
    return silence.step(silence.start([RULES["node_silent"]], 15, TIMES), heard)[1]


ELSE: Mapping[str, Callable[[], list[v1.Finding]]] = {
    "device_lost": lambda: happened("LOST"),
    "device_missing": lambda: happened("MISSING"),
    "driver_hang": lambda: happened("HANG"),
    "xid_critical": lambda: happened("XID", code=79),
    "xid_warning": lambda: happened("XID", "WARNING", code=54),
    "xid_application": lambda: happened("XID", "WARNING", "APPLICATION", code=13),
    "xid_application_repeated": lambda: happened("XID", "INFO", "APPLICATION", code=43, count=10),
    "nvswitch_fatal": lambda: happened("SXID", code=20034),
    "driver_log_critical": lambda: happened("VENDOR_LOG"),
    "memory_exhaustion_predicted": lambda: predicted("memory_used_bytes"),
    "temperature_limit_predicted": lambda: predicted("temperature_celsius"),
    "memory_temperature_limit_predicted": lambda: predicted("memory_temperature_celsius"),
    "thermal_margin_predicted": lambda: predicted("temperature_margin_celsius", limit=0, current=9),
    "power_limit_predicted": lambda: predicted("power_watts"),
    "ecc_corrected_growth_predicted": lambda: predicted("ecc_corrected_volatile_errors", unit="{error}/min"),
    "pcie_replays_predicted": lambda: predicted("pcie_replays", unit="{replay}/min"),
    "remapped_rows_limit_predicted": lambda: predicted("remapped_rows_uncorrectable"),
    "kv_cache_exhaustion_predicted": lambda: predicted("kv_cache_used_ratio", limit=1, current=0.8, entity="service/c1/prod/chat"),
    "service_queue_predicted": lambda: predicted("requests_waiting", entity="service/c1/prod/chat"),
    "service_queue_long": waiting,
    "device_anomaly": unusual,
    "power_limit_changed": capped,
    "cooling_degraded": warming,
    "error_burst": bursting,
    "slow_card": lambda: beside("sm_clock_hertz", 1.4e9),
    "hot_card": lambda: beside("temperature_celsius", 75.0),
    "slow_card_of_model": far,
    "ghost_card": ghost,
    "node_silent": silent,
}


def card(seconds: float, values: Values) -> v1.SampleBatch:
    return batch(seconds, sample("v:1", **{**LIMITS, **values}))


def test_no_rule_is_left_out() -> None:
    """D93: a rule that has never been seen to fire may never fire."""
    assert set(RULES) == set(BY_SAMPLE) | set(ELSE)


@pytest.mark.parametrize("name", BY_SAMPLE)
def test_it_fires_on_what_it_is_for(name: str) -> None:
    """D93 (nvidia_gpu_exporter's rate() misses the first event; l9gpu compares 0.50 with 0 to 100): units and firsts are right."""
    good, bad = BY_SAMPLE[name]
    found = run(state(*RULES.values()), card(0, good), card(1, good), card(2, bad))
    assert said(found) == [(2, name, True)]


@pytest.mark.parametrize("name", ELSE)
def test_it_fires_on_its_event_forecast_silence_or_score(name: str) -> None:
    """D93, for what is no reading."""
    assert [(finding.rule, finding.active) for finding in ELSE[name]()] == [(name, True)]


def test_what_is_not_known_is_no_fault() -> None:
    """D13 (EKS NMA#246), D82 (aicr#2641), D83 (gpud#1147): blank row remapping, no fabric, no links: fields absent on a board without."""
    fields = {name for good, _ in BY_SAMPLE.values() for name in good} | set(LIMITS)
    blank = sample("v:1", absent=dict.fromkeys(fields, NOT_SUPPORTED))
    assert run(state(*RULES.values()), *[batch(s, blank) for s in range(20)]) == []


def test_a_dead_fabric_manager_is_noticed() -> None:
    """D79 (NVSentinel#883, #891): dead for 20 days, with every reading well; and it ends when the card has joined."""
    waits, joined = {"fabric_state": 1, "utilization_ratio": 0.0}, {"fabric_state": 3}
    found = run(state(*RULES.values()), card(0, waits), card(20 * 86_400, waits), card(20 * 86_400 + 1, joined))
    assert said(found) == [
        (0, "fabric_not_joined", True),
        (20 * 86_400, "fabric_not_joined", True),
        (20 * 86_400 + 1, "fabric_not_joined", False),
    ]
    assert "not started" in found[0].summary


def test_a_power_cap_is_no_fault() -> None:
    """D80 (NVSentinel#465: a power throttle sent people to the vendor's support; #1708: its noise was hidden by hand)."""
    capped = {"throttle_reasons": 1 << 2, "power_watts": 700.0, "throttled_power_seconds": 3600.0}
    assert run(state(*RULES.values()), *[card(s, capped) for s in range(20)]) == []


@pytest.mark.parametrize(("margin", "slowdown", "fires"), [(0.0, 87.0, False), (-5.0, 87.0, False), (3.0, 87.0, True), (0.0, 60.0, True)])
def test_heat_is_judged_by_the_cards_own_limit(margin: float, slowdown: float, fires: bool) -> None:
    """D85 (gpud#1208): margins of 0 and -5 degrees to where the card stops to speed up are no alarm; its own slowdown is the limit.

    A core of 80 degrees has 7 left of 87; one of 84 has 3, and one of 60 has none where the card slows down at 60.
    """
    core = {87.0: 84.0 if margin > 0 else 80.0, 60.0: 60.0}[slowdown]
    values = {"temperature_celsius": core, "temperature_margin_celsius": margin, "temperature_slowdown_celsius": slowdown}
    found = run(state(*RULES.values()), card(0, values))
    assert said(found) == ([(0, "temperature_near_slowdown", True)] if fires else [])


def test_a_rule_without_the_cards_limit_does_not_guess_one() -> None:
    """D85: a board that does not tell its slowdown temperature is not compared with a constant."""
    hot = batch(0, sample("v:1", absent={"temperature_slowdown_celsius": NOT_SUPPORTED}, temperature_celsius=95.0))
    assert run(state(*RULES.values()), hot) == []
