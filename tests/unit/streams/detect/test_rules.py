"""Rules: the built-in ones load, and every fault in a file is said with file, rule, key and remedy."""

from pathlib import Path

import pytest

from schemas.telemetry import v1
from streams.rules import RulesError, load_rules
from streams.rules.vocabulary import EVENT_KINDS, THROTTLE_BITS

RULE = """
rules:
  - name: hot
    meaning: It is hot.
    when: {type: above, metric: temperature_celsius, limit: 85, clear_limit: 80}
    summary: "{value} on {node}"
"""


def load(tmp_path: Path, text: str) -> tuple[str, ...]:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    return tuple(r.name for r in load_rules(file))


def test_the_built_in_rules_load_and_their_names_are_the_documented_ones() -> None:
    assert {r.name for r in load_rules()} == {
        "memory_nearly_full",
        "temperature_near_slowdown",
        "thermal_throttle",
        "power_brake",
        "ecc_uncorrected",
        "ecc_corrected_burst",
        "row_remap_failed",
        "row_remap_pending",
        "pcie_link_degraded",
        "pcie_replays_many",
        "interconnect_errors",
        "device_lost",
        "device_missing",
        "ecc_sram_threshold",
        "page_retirement_pending",
        "recovery_wanted",
        "row_remap_exhausted",
        "driver_hang",
        "fabric_not_joined",
        "fabric_failed",
        "xid_critical",
        "xid_warning",
        "xid_application",
        "xid_application_repeated",
        "nvswitch_fatal",
        "driver_log_critical",
        "node_silent",
        "memory_exhaustion_predicted",
        "temperature_limit_predicted",
        "memory_temperature_limit_predicted",
        "thermal_margin_predicted",
        "power_limit_predicted",
        "ecc_corrected_growth_predicted",
        "pcie_replays_predicted",
        "remapped_rows_limit_predicted",
        "kv_cache_exhaustion_predicted",
        "service_queue_predicted",
        "device_anomaly",
        "error_burst",
        "slow_card",
        "slow_card_of_model",
        "hot_card",
        "ghost_card",
        "cooling_degraded",
        "power_limit_changed",
        "service_queue_long",
    }


def test_only_rules_without_a_sourced_limit_are_shadow() -> None:
    assert {r.name for r in load_rules() if r.mode == "shadow"} == {
        "device_anomaly",
        "power_limit_predicted",
        "service_queue_long",
        "service_queue_predicted",
        "slow_card_of_model",
        "xid_application",
    }


def test_every_built_in_rule_names_its_runbook() -> None:
    assert all(r.runbook == f"docs/runbooks/{r.name}.md" for r in load_rules())


def test_a_file_replaces_the_built_in_rules(tmp_path: Path) -> None:
    assert load(tmp_path, RULE) == ("hot",)


def test_names_of_events_and_bits_come_from_the_vocabulary() -> None:
    assert EVENT_KINDS["xid"] == v1.DeviceEventKind.DEVICE_EVENT_KIND_XID
    assert THROTTLE_BITS["hardware_power_brake"] == 7


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("name: hot", "name: Hot!", ["rule 'Hot!'", "key name"]),
        ("    meaning: It is hot.\n", "", ["rule 'hot'", "key meaning: missing", "add it"]),
        ("    meaning:", "    severty: info\n    meaning:", ["key severty: unknown", "did you mean severity"]),
        ("limit: 85", "limitt: 1, limit: 85", ["key when.limitt: unknown", "remove it"]),
        ("temperature_celsius", "temperature_celcius", ["key when.metric", "nearest", "temperature_celsius"]),
        ("type: above", "type: abov", ["key when.type: 'abov' is not known", "'above'"]),
        ("type: above, ", "", ["key when.type: missing"]),
        ("clear_limit: 80", "clear_limit: 90", ["key when: ", "clear_limit lies beyond limit", "put it below"]),
        ("limit: 85", "limit: .nan", ["key when.limit"]),
        ("{value} on {node}", "{value} on {nod}", ["key summary", "no word {nod}", "node"]),
        ("{value} on {node}", "{value.__class__}", ["key summary", "no word {value.__class__}"]),
        ("{value} on {node}", "{value:.3f}", ["key summary", "takes no format"]),
        ("{value} on {node}", "{value", ["key summary"]),
        ("    meaning:", "    severity: bad\n    meaning:", ["key severity", "'bad'"]),
        ("    meaning:", "    hold_seconds: -1\n    meaning:", ["key hold_seconds", "-1"]),
        ("    meaning:", "    entity: node\n    meaning:", ["temperature_celsius is of a device", "set entity: device"]),
        ("    meaning:", "    meaning: Twice.\n    meaning:", ["given twice", "meaning"]),
        ("rules:", "rulez:", ["the one key `rules`"]),
        ("rules:", "rules: [", ["not valid YAML"]),
    ],
)
def test_a_fault_is_said_with_file_rule_key_and_remedy(tmp_path: Path, old: str, new: str, wanted: list[str]) -> None:
    with pytest.raises(RulesError) as raised:
        load(tmp_path, RULE.replace(old, new, 1))
    message = str(raised.value)
    assert message.startswith(str(tmp_path / "rules.yaml"))
    assert [part for part in wanted if part not in message] == []


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        ("{type: increases, metric: power_watts, within_seconds: 60}", "power_watts is a gauge, this condition needs a counter"),
        ("{type: bit_set, metric: throttle_reasons, bits: [thermal]}", "no throttle reason 'thermal'; nearest: "),
        ("{type: bit_set, metric: throttle_reasons, bits: []}", "key when.bits"),
        ("{type: event, raised_by: [lst], cleared_by: [returned]}", "no device event 'lst'; nearest: lost"),
        ("{type: event, raised_by: [lost]}", "this would never clear"),
        ("{type: below, metric: power_watts, limit: 50, clear_limit: 40}", "put it above"),
        ("{type: ratio_above, metric: memory_used_bytes, of: memory_total_bytes, limit: 0.9, clear_limit: 0.95}", "put it below"),
        ("{type: forecast, metric: memory_used_bytes, within_seconds: 60, probability_ratio: 0.2}", "clear_probability_ratio lies above"),
        ("{type: anomaly, metrics: [power_watts], score: 0.3}", "clear_score lies above score"),
        ("{type: burst, counters: [power_watts]}", "power_watts is a gauge, this condition needs a counter"),
        ("{type: peer, metrics: [fan_ratio], side: below}", "fan_ratio is not compared among devices; one of: dram_active_ratio"),
        ("{type: peer, metrics: [power_watts]}", "key when.side: missing"),
        ("{type: residual, metrics: [power_watts, temperature_celsius]}", "key when.metrics"),
        ("{type: residual, metrics: [power_watts, sm_clock_hertz, fan_ratio, power_watts]}", "a metric is named twice"),
        ("{type: beyond_load, metric: power_watts, load: power_watts}", "power_watts is its own load"),
        ("{type: beyond_load, metric: temperature_celsius, load: pcie_replays}", "pcie_replays is a counter, this condition needs a gauge"),
        ("{type: ghost, memory_below_bytes: 1000}", "unknown_memory_below_bytes lies above memory_below_bytes"),
        ("{type: silent}", "type silent is of a node"),
        ("{type: above, metric: requests_waiting, limit: 3}", "requests_waiting is of a service"),
        ("{type: forecast, metric: kv_cache_used_ratio, within_seconds: 60}", "kv_cache_used_ratio is of a service"),
        ("{type: forecast, metric: memory_used_bytes, within_seconds: 60, direction: down}", "key when.direction"),
        ("{type: above, metric: temperature_celsius, limit: {oof: power_watts}}", "key when.limit.oof: unknown"),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused(tmp_path: Path, when: str, wanted: str) -> None:
    text = RULE.replace("{type: above, metric: temperature_celsius, limit: 85, clear_limit: 80}", when)
    with pytest.raises(RulesError) as raised:
        load(tmp_path, text)
    assert wanted in str(raised.value)


def test_all_faults_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    second = RULE.replace("rules:\n", "").replace("It is hot.", "Again.").replace("limit: 85", "limit: hot")
    with pytest.raises(RulesError) as raised:
        load(tmp_path, RULE.replace("type: above", "type: over") + second)
    assert len(str(raised.value).splitlines()) == 2


UNLESS = "    unless: [{}]\n    meaning:"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("hott", "key unless: no other rule 'hott'"), ("hot", "no other rule 'hot'"), ("warn", "no other rule 'warn'; did you mean warm?")],
)
def test_unless_names_another_rule(tmp_path: Path, name: str, wanted: str) -> None:
    second = RULE.replace("rules:\n", "").replace("name: hot", "name: warm")
    with pytest.raises(RulesError) as raised:
        load(tmp_path, RULE.replace("    meaning:", UNLESS.format(name), 1) + second)
    assert wanted in str(raised.value)


def test_unless_is_of_rules_about_readings(tmp_path: Path) -> None:
    when = "{type: event, raised_by: [lost], cleared_by: [returned]}"
    text = RULE.replace("{type: above, metric: temperature_celsius, limit: 85, clear_limit: 80}", when)
    with pytest.raises(RulesError, match="unless is asked of rules about a device's readings only"):
        load(tmp_path, text.replace("    meaning:", UNLESS.format("warm"), 1))


def test_a_name_used_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match="used twice"):
        load(tmp_path, RULE + RULE.replace("rules:\n", ""))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match=r"cannot be read.*streams\.detect\.rules"):
        load_rules(tmp_path / "none.yaml")
