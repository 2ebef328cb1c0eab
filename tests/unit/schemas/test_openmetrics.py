"""Both formats say exactly what the state holds, under names and labels that stay; checked with Prometheus' own Python parsers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from schemas import openmetrics
from schemas.catalogue import CATALOGUE
from schemas.device_state import EventKey, FleetState, NodeState
from schemas.openmetrics import encode
from schemas.openmetrics_text import Format, short, wanted
from schemas.telemetry import v1
from tests.unit.schemas.fleet_states import NODE, NOW_NS, UID, device, everything, fleet, float32, instance

FORMATS: list[Format] = ["text", "openmetrics"]
KEY = {"cluster": "prod-a", "node": "gpu-01", "vendor": "nvidia", "uid": UID, "kind": "accelerator"}
FULL = device(
    links=(
        v1.InterconnectLink(
            index=3,
            active=True,
            tx_bytes=2**60 + 1,
            rx_bytes=5,
            crc_errors=1,
            version=4,
            speed_bytes_per_second=25e9,
            remote_bdf="0000:05:00.0",
            remote_kind=v1.DeviceKind.DEVICE_KIND_SWITCH,
        ),
    ),
    vendor_metrics={"dcgm_nvlink_bytes_per_second": 12.5},
    events={EventKey("xid", 79): 2, EventKey("xid", 45): 168_924, EventKey("lost", None): 1},
    simulated=False,
)


def families(state: FleetState, form: Format) -> dict[str, Metric]:
    text = encode(state, form)
    parsed: Iterable[Metric] = parse_text(text) if form == "text" else parse_openmetrics(text + "# EOF\n")  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped
    return {metric.name: metric for metric in parsed}


PARSED = {form: families(fleet(FULL), form) for form in FORMATS}


def samples(state: FleetState, form: Format = "text") -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {(s.name, frozenset(s.labels.items())): s.value for metric in families(state, form).values() for s in metric.samples}


def one(state: FleetState, name: str, **labels: str) -> float:
    return samples(state)[name, frozenset({**KEY, **labels}.items())]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda m: m.name)
def test_each_field_has_its_name_type_unit_and_value(metric, form: Format) -> None:  # type: ignore[no-untyped-def]  # ids need the value
    family = PARSED[form][metric.prometheus_name]
    counter = metric.kind == "counter"
    assert family.type == ("counter" if counter else "gauge")
    assert metric.meaning.rstrip(".") in family.documentation
    (sample,) = family.samples
    assert sample.name == metric.prometheus_name + ("_total" if counter else "")
    assert sample.labels == KEY
    value = FULL.values[metric.name]
    assert (float32(sample.value) if metric.wire == "float" else sample.value) == value
    if form == "openmetrics" and metric.unit in ("W", "J", "Cel", "Hz", "By", "By/s", "s"):
        assert family.unit


@pytest.mark.parametrize("form", FORMATS)
def test_no_sample_comes_twice_and_families_are_together(form: Format) -> None:
    text = encode(fleet(FULL, device("nvidia:GPU-b", 1)), form)
    lines = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))
    heads = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(heads) == len(set(heads))


@pytest.mark.parametrize("value", [0.47, 3.4028235e38, 1.17549435e-38, 0.1, 63012345678.0, 1980e6, -0.5, 0.0])
def test_a_float_is_short_and_still_that_float(value: float) -> None:
    wire = float32(value)
    assert float32(float(short(wire))) == wire
    assert len(short(wire)) <= 15


def test_a_ratio_is_shown_as_people_write_it() -> None:
    assert one(fleet(device(values={"utilization_ratio": float32(0.47)})), "xpulse_device_utilization_ratio") == 0.47


def test_counters_keep_every_digit() -> None:
    assert f'xpulse_device_link_tx_bytes_total{{{_labels()},link="3"}} {2**60 + 1}\n' in encode(fleet(FULL))


def _labels() -> str:
    return ",".join(f'{name}="{value}"' for name, value in KEY.items())


def test_reasons_are_one_series_a_bit_beside_the_raw_set() -> None:
    state = fleet(device(values={"throttle_reasons": 1 << 6 | 1 << 20, "fabric_unhealthy": 1}))
    assert one(state, "xpulse_device_throttle_reason", reason="hardware_thermal") == 1
    assert one(state, "xpulse_device_throttle_reason", reason="idle") == 0
    assert one(state, "xpulse_device_throttle_reason", reason="bit_20") == 1
    assert one(state, "xpulse_device_throttle_reasons") == 1 << 6 | 1 << 20
    assert one(state, "xpulse_device_fabric_trouble", trouble="degraded_bandwidth") == 1


def test_states_are_explained_where_they_are_read() -> None:
    text = encode(fleet(device(values={"recovery_action": 1})))
    assert re.search(r"# HELP xpulse_device_recovery_action .*\(0 none, 1 reset_device, 2 reboot_node,", text)
    assert re.search(r"# HELP xpulse_device_compute_mode .*0 shared", encode(fleet(FULL)))


def test_what_could_not_be_read_has_no_sample_and_a_reason() -> None:
    state = fleet(device(values={}, absences={"power_watts": "lost", "fan_ratio": "not_supported", "sm_clock_hertz": "lost"}))
    text = encode(state)
    assert "xpulse_device_power_watts" not in text
    assert one(state, "xpulse_device_field_absent", field="power_watts", reason="lost") == 1
    assert 'field="fan_ratio"' not in text  # what a card never has is counted only
    assert one(state, "xpulse_device_fields_absent", reason="not_supported") == 1
    assert one(state, "xpulse_device_fields_absent", reason="lost") == 2
    assert one(state, "xpulse_device_fields_absent", reason="stale") == 0


def test_a_device_that_is_not_in_the_state_has_no_series() -> None:
    assert UID not in encode(FleetState(NOW_NS, (), (NodeState(NODE),)))
    assert encode(FleetState(NOW_NS)) == ""


def test_links_and_what_is_at_their_end() -> None:
    state = fleet(FULL)
    assert one(state, "xpulse_device_link_active", link="3") == 1
    assert one(state, "xpulse_device_link_rx_bytes_total", link="3") == 5
    assert one(state, "xpulse_device_link_speed_bytes_per_second", link="3") == 25e9
    assert one(state, "xpulse_device_link_info", link="3", remote_bdf="0000:05:00.0", remote_kind="switch") == 1
    assert "link_replay_errors" not in encode(state)  # never said


def test_every_optional_field_of_a_link_is_written() -> None:
    optional = {field.name for field in v1.InterconnectLink.DESCRIPTOR.fields if field.has_presence}
    assert {name for name, _, _ in openmetrics._LINK} == optional


def test_identity_is_in_the_info_and_only_there() -> None:
    state = fleet(FULL, instance(7, "1g.10gb", values={}))
    text = encode(state)
    (info,) = (line for line in text.splitlines() if line.startswith("xpulse_device_info{") and 'kind="accelerator"' in line)
    for label in ('model="NVIDIA H100 80GB HBM3"', 'serial="1653923026510"', 'bdf="0000:3b:00.0"', 'driver_version="580.95.05"'):
        assert label in info
        assert text.count(label) == 2  # the card's and its instance's
    (part,) = (line for line in text.splitlines() if line.startswith("xpulse_device_info{") and 'kind="partition"' in line)
    for label in (f'parent="{UID}"', 'profile="1g.10gb"', 'gpu_instance_id="7"', 'compute_instance_id="0"'):
        assert label in part


def test_the_simulated_are_marked_and_others_are_not() -> None:
    assert 'simulated="true"' in encode(fleet(dataclasses.replace(FULL, simulated=True)))
    assert "simulated" not in encode(fleet(FULL))


# peers.md D68: volatile readings as labels (all-smi#425/#433: 15 keys); D33: pod labels on device series; D67: labels that are renamed.
def test_labels_come_from_a_closed_list_that_is_the_contract() -> None:
    state = fleet(FULL, instance(7, "1g.10gb"), device("nvidia:x", absences={"fan_ratio": "error"}, values={}))
    used = {label for metric in families(state, "text").values() for sample in metric.samples for label in sample.labels}
    assert used <= openmetrics.LABELS
    assert openmetrics.IDENTITY == ("cluster", "node", "vendor", "uid", "kind", "parent", "simulated")
    assert not {"pod", "namespace", "container", "exported_pod", "Hostname", "hostname", "gpu", "pid"} & openmetrics.LABELS


def test_no_label_changes_when_readings_do() -> None:
    before = fleet(dataclasses.replace(FULL, values=everything()))
    after = fleet(dataclasses.replace(FULL, taken_at_ns=NOW_NS + 10**9, values={k: _other(v) for k, v in everything().items()}))
    assert samples(before).keys() == samples(after).keys()
    assert samples(before) != samples(after)


def _other(value: float) -> float:
    return (not value) if isinstance(value, bool) else value / 2 if isinstance(value, float) else value // 2


def test_no_label_holds_a_reading() -> None:
    state = fleet(FULL)
    readings = {short(v) if isinstance(v, float) else str(v) for v in FULL.values.values() if not isinstance(v, bool) and v > 1000}
    values = {v for m in families(state, "text").values() for s in m.samples for v in s.labels.values()}
    assert values & readings == set()


# peers.md D73: dcgm-exporter#500/#190: the same Xid twice is invisible in a gauge; D93: rate() misses the first event.
def test_the_same_xid_twice_is_an_increase_and_so_is_the_first_one() -> None:
    calm, once, twice = (fleet(dataclasses.replace(FULL, events=e)) for e in ({}, {EventKey("xid", 79): 1}, {EventKey("xid", 79): 2}))
    assert [one(s, "xpulse_device_events_total", event="xid") for s in (calm, once, twice)] == [0, 1, 2]
    assert one(twice, "xpulse_device_event_codes_total", event="xid", code="79") == 2
    assert one(calm, "xpulse_device_events_total", event="lost") == 0


# peers.md D73, DCGM#235: an Xid 62 is replaced by a 45 in the gauge.
def test_a_symptom_does_not_hide_its_cause() -> None:
    state = fleet(dataclasses.replace(FULL, events={EventKey("xid", 62): 1, EventKey("xid", 45): 168_924}))
    assert one(state, "xpulse_device_event_codes_total", event="xid", code="62") == 1
    assert one(state, "xpulse_device_event_codes_total", event="xid", code="45") == 168_924


def test_a_node_has_its_labels_and_its_own_events() -> None:
    node = NodeState(NODE, {"rack": "r1", "a.b": "1", "a_b": "2", "0": 'x"y', "none": ""}, {EventKey("hang", None): 3})
    parsed = families(FleetState(NOW_NS, (), (node,)), "openmetrics")
    (info,) = parsed["xpulse_node"].samples
    assert info.labels == {
        "cluster": "prod-a",
        "node": "gpu-01",
        "label_rack": "r1",
        "label_a_b": "1",
        "label_a_b_2": "2",
        "label_0": 'x"y',
    }
    assert {s.labels["event"]: s.value for s in parsed["xpulse_node_events"].samples}["hang"] == 3


# dcgm plugin and NVML on one card: the series would come twice, and Prometheus would refuse the whole page.
def test_two_sources_of_one_card_are_one_device() -> None:
    nvml = device(values={"power_watts": 300.0}, absences={"sm_active_ratio": "not_supported", "fan_ratio": "not_supported"})
    dcgm = device(source="dcgm", values={"power_watts": 299.0, "sm_active_ratio": 0.5}, vendor_metrics={"x": 1.0})
    for order in ((nvml, dcgm), (dcgm, nvml)):
        state = fleet(*order)
        assert one(state, "xpulse_device_power_watts") == 300.0
        assert one(state, "xpulse_device_sm_active_ratio") == 0.5
        assert one(state, "xpulse_device_fields_absent", reason="not_supported") == 1
        assert one(state, "xpulse_device_vendor_metric", metric="x") == 1.0


def test_equal_uids_on_two_nodes_stay_two() -> None:
    elsewhere = dataclasses.replace(FULL, node=NODE._replace(cluster="prod-b"))
    assert encode(fleet(FULL, elsewhere)).count("xpulse_device_power_watts{") == 2


# The parser ends a line where str.splitlines does; Prometheus' own only at a newline.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=30)


@pytest.mark.parametrize(("form", "info"), [("text", "xpulse_device_info"), ("openmetrics", "xpulse_device")])
@given(model=TEXTS, label=TEXTS)
def test_any_text_that_users_or_vendors_choose_comes_back_as_it_was(form: Format, info: str, model: str, label: str) -> None:
    node = NodeState(NODE, {label: label})
    found = families(FleetState(NOW_NS, (device(values={}, info=v1.DeviceInfo(model=model)),), (node,)), form)
    assert found[info].samples[0].labels.get("model", "") == model


def test_a_lone_surrogate_of_a_file_name_does_not_end_the_page() -> None:
    node = NodeState(NODE, {"rack": "r\udcff"})
    assert 'label_rack="r?"' in encode(FleetState(NOW_NS, (), (node,)))


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "text"),
        ("*/*", "text"),
        ("text/html,application/xhtml+xml", "text"),
        ("application/openmetrics-text", "openmetrics"),
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "openmetrics",
        ),
        ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;q=0.3,*/*;q=0.2", "openmetrics"),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
            "text",
        ),
        ("application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5", "text"),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", "text"),
        ("application/openmetrics-text;q=0", "text"),
        ('Application/OpenMetrics-Text; Version="1.0.0"', "openmetrics"),
        (";;;q=,,", "text"),
    ],
)
def test_the_client_says_which_format(accept: str, form: Format) -> None:
    assert wanted(accept) == form
