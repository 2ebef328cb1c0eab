"""What every store must answer: the read interface of schemas/store.py, after the points came in through the sink."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from schemas import topics
from schemas.telemetry import v1
from tests.conformance.store.conftest import Filled
from tests.fakes.store_messages import SECOND_NS, allocation, batch, record, sample, samples

TAGS = (("cluster", "c1"), ("kind", "accelerator"), ("model", "NVIDIA H200"), ("node", "n1"), ("uid", "nvidia:a"), ("vendor", "nvidia"))


def tick(place: Filled, second: int, **values: Any) -> v1.SampleBatch:
    """A thin batch of device a at `second`."""
    return batch(place.t0 + second * SECOND_NS, sample("nvidia:a", **values), sequence=second)


def full(place: Filled, second: int, **values: Any) -> v1.SampleBatch:
    """A full batch of device a at `second`."""
    return batch(place.t0 + second * SECOND_NS, sample("nvidia:a", full=True, **values), sequence=second)


def test_latest_gives_value_and_time_of_each_field(place: Filled) -> None:
    place.put(*samples(full(place, 0, power_watts=300.5, memory_total_bytes=141 * 2**30), tick(place, 1, power_watts=301)))

    (found,) = place.store.latest("device")

    assert found.tags == TAGS
    assert found.at_ns == place.t0 + SECOND_NS
    assert found.values["power_watts"] == (301.0, place.t0 + SECOND_NS)
    assert found.values["memory_total_bytes"] == (141 * 2**30, place.t0)
    assert found.values["serial"] == ("165", place.t0)
    assert found.values["simulated"] == (False, place.t0)
    assert found.absent == {}


def test_an_absence_newer_than_a_value_replaces_it_until_the_next_value(place: Filled) -> None:
    gone = batch(place.t0 + SECOND_NS, sample("nvidia:a", full=True, absent={"power_watts": "lost"}), sequence=2)
    place.put(*samples(full(place, 0, power_watts=300), gone))
    (found,) = place.store.latest("device")
    assert "power_watts" not in found.values
    assert found.absent == {"power_watts": "lost"}

    place.put(*samples(tick(place, 2, power_watts=302)))
    (found,) = place.store.latest("device")
    assert found.values["power_watts"][0] == 302
    assert found.absent == {}


def test_absences_of_thin_samples_add_to_those_of_the_full_one(place: Filled) -> None:
    first = batch(place.t0, sample("nvidia:a", full=True, power_watts=1, absent={"fan_ratio": "not_supported"}))
    thin = batch(place.t0 + SECOND_NS, sample("nvidia:a", absent={"power_watts": "error"}), sequence=2)
    place.put(*samples(first, thin))

    (found,) = place.store.latest("device")

    assert found.absent == {"fan_ratio": "not_supported", "power_watts": "error"}


def test_what_the_last_full_sample_does_not_say_is_not_current(place: Filled) -> None:
    place.put(*samples(full(place, 0, power_watts=300, sm_active_ratio=0.5), full(place, 1, power_watts=301)))

    (found,) = place.store.latest("device")

    assert "sm_active_ratio" not in found.values


def test_latest_looks_back_to_since(place: Filled) -> None:
    place.put(*samples(full(place, 0, power_watts=300)))

    assert place.store.latest("device", since_ns=place.t0 + 1) == []
    assert len(place.store.latest("device", since_ns=place.t0)) == 1


def test_range_without_step_gives_the_points_of_the_half_open_span(place: Filled) -> None:
    place.put(*samples(full(place, 0, power_watts=0.1), *(tick(place, s, power_watts=s) for s in range(1, 5))))

    (found,) = place.store.range("device", ["power_watts"], start_ns=place.t0 + SECOND_NS, end_ns=place.t0 + 4 * SECOND_NS)

    assert (found.tags, found.field) == (TAGS, "power_watts")
    assert found.times_ns.tolist() == [place.t0 + s * SECOND_NS for s in (1, 2, 3)]
    assert found.values.tolist() == [1, 2, 3]


def test_range_with_step_holds_a_value_until_it_is_too_old(place: Filled) -> None:
    place.put(*samples(full(place, 0, power_watts=10), tick(place, 1, power_watts=11), tick(place, 5, power_watts=15)))

    (found,) = place.store.range(
        "device", ["power_watts"], start_ns=place.t0, end_ns=place.t0 + 8 * SECOND_NS, step_ns=SECOND_NS, max_age_ns=2 * SECOND_NS
    )

    assert found.times_ns.tolist() == [place.t0 + s * SECOND_NS for s in range(8)]
    assert [None if math.isnan(v) else v for v in found.values] == [10, 11, 11, 11, None, 15, 15, 15]


def test_range_with_step_takes_the_last_value_at_or_before_each_point(place: Filled) -> None:
    place.put(*samples(full(place, 0, power_watts=10), *(tick(place, s, power_watts=10 + s) for s in range(1, 10))))

    (found,) = place.store.range(
        "device", ["power_watts"], start_ns=place.t0 + 500_000_000, end_ns=place.t0 + 9 * SECOND_NS, step_ns=3 * SECOND_NS
    )

    assert found.values.tolist() == [10, 13, 16]


def test_range_holds_by_the_catalogue_when_nothing_else_is_asked(place: Filled) -> None:
    place.put(*samples(full(place, 0, power_watts=10, memory_total_bytes=5)))
    span: dict[str, Any] = {"start_ns": place.t0 + 10 * SECOND_NS, "end_ns": place.t0 + 190 * SECOND_NS, "step_ns": 10 * SECOND_NS}

    fast, slow = place.store.range("device", ["power_watts", "memory_total_bytes"], **span)

    assert (fast.field, slow.field) == ("power_watts", "memory_total_bytes")
    assert [v for v in fast.values.tolist() if v == v] == [10]
    assert len([v for v in slow.values.tolist() if v == v]) == 18


def test_range_with_step_is_unknown_where_the_value_became_absent(place: Filled) -> None:
    gone = batch(place.t0 + 2 * SECOND_NS, sample("nvidia:a", full=True, absent={"power_watts": "lost"}), sequence=2)
    place.put(*samples(full(place, 0, power_watts=10), gone, tick(place, 4, power_watts=14)))

    (found,) = place.store.range("device", ["power_watts"], start_ns=place.t0, end_ns=place.t0 + 6 * SECOND_NS, step_ns=SECOND_NS)

    assert [None if math.isnan(v) else v for v in found.values] == [10, 10, None, None, 14, 14]


def test_series_are_listed_by_tag(place: Filled) -> None:
    at = place.t0
    b = batch(at, sample("nvidia:b", full=True, power_watts=1), cluster="c2")
    place.put(*samples(full(place, 0, power_watts=1), b))

    assert place.store.series("device", where={"cluster": "c1"}) == [TAGS]
    assert len(place.store.series("device")) == 2
    assert place.store.series("usage") == []


def test_two_clusters_with_equal_node_names_stay_apart(place: Filled) -> None:
    at = place.t0
    place.put(*samples(*(batch(at, sample("nvidia:a", full=True, power_watts=w), cluster=c) for c, w in (("c1", 1), ("c2", 2)))))

    found = {dict(row.tags)["cluster"]: row.values["power_watts"][0] for row in place.store.latest("device")}

    assert found == {"c1": 1, "c2": 2}


def test_the_same_records_again_change_nothing(place: Filled) -> None:
    records = samples(full(place, 0, power_watts=1), tick(place, 1, power_watts=2))
    place.put(*records)
    before = place.store.latest("device")
    place.put(*records)

    assert place.store.latest("device") == before
    (found,) = place.store.range("device", ["seq"], start_ns=place.t0, end_ns=place.t0 + 10 * SECOND_NS)
    assert found.values.tolist() == [0, 1]


def test_events_carry_exact_times_and_do_not_collide(place: Filled) -> None:
    at = place.t0 + 123_456_789
    kind = v1.DeviceEventKind.DEVICE_EVENT_KIND_XID
    same = [v1.DeviceEvent(cluster="c1", node="n1", uid="nvidia:a", kind=kind, at_ns=at, code=code, text="x\ny") for code in (79, 48)]
    deploy = v1.ContextEvent(
        entity="service/c1/prod/chat", cluster="c1", kind=v1.ContextEventKind.CONTEXT_EVENT_KIND_DEPLOY, at_ns=at + 1, text="v2"
    )
    place.put(*(record(topics.DEVICE_EVENTS, e, i) for i, e in enumerate(same)), record(topics.CONTEXT_EVENTS, deploy))

    found = place.store.events(start_ns=at, end_ns=at + 2)

    assert [(e.at_ns, e.kind) for e in found] == [(at, "xid"), (at, "xid"), (at + 1, "deploy")]
    assert {e.fields.get("code") for e in found} == {79, 48, None}
    assert found[0].fields["text"] == "x y"
    assert place.store.events(start_ns=at + 1, end_ns=at + 2, where={"kind": "xid"}) == []


def test_intervals_are_opened_and_closed(place: Filled) -> None:
    t0, kinds = place.t0, v1.AllocationChangeKind
    opened = kinds.ALLOCATION_CHANGE_KIND_OPENED
    changes = [
        allocation(opened, t0, identity="1"),
        allocation(opened, t0, identity="2"),
        allocation(kinds.ALLOCATION_CHANGE_KIND_CLOSED, t0, identity="1", ended_ns=t0 + 5 * SECOND_NS),
    ]
    place.put(*(record(topics.ALLOCATION_CHANGES, c, i) for i, c in enumerate(changes)))

    during = place.store.intervals(start_ns=t0 + SECOND_NS, end_ns=t0 + 2 * SECOND_NS, where={"uid": "nvidia:a"})
    after = place.store.intervals(start_ns=t0 + 5 * SECOND_NS, end_ns=t0 + 6 * SECOND_NS)

    assert [(i.id, i.pod, i.started_at_ns, i.ended_at_ns) for i in during] == [
        ("1", "chat-1", t0, t0 + 5 * SECOND_NS),
        ("2", "chat-2", t0, None),
    ]
    assert [i.id for i in after] == ["2"]
    assert place.store.events(start_ns=t0, end_ns=t0 + SECOND_NS) == []


def test_usage_of_two_pods_of_one_workload_is_added(place: Filled) -> None:
    who = [v1.Workload(namespace="prod", workload="chat", pod=pod) for pod in ("p1", "p2")]
    rows = [v1.Attributed(uid="nvidia:a", workload=w, utilization_ratio=0.25, share_ratio=0.5) for w in who]
    usage, later = (
        v1.AttributedBatch(
            cluster="c1", node="n1", source="s", sequence=n, taken_at_ns=place.t0 + n * SECOND_NS, interval_ns=SECOND_NS, rows=rows
        )
        for n in (0, 1)
    )
    place.put(record(topics.USAGE, usage), record(topics.USAGE, later, 1))

    (found,) = place.store.latest("usage", where={"workload": "chat"})

    assert found.at_ns == place.t0
    assert found.values["utilization_ratio"][0] == 0.5
    assert found.values["pod"][0] == "p1,p2"


def test_hostile_names_are_only_names(place: Filled) -> None:
    pod = 'a,uid=x y=1i\ndevice,cluster=c9 power_watts=9"\\'
    window = v1.InferenceWindow(cluster="c1", node="n1", started_at_ns=place.t0, ended_at_ns=place.t0, requests=2**64 - 1)
    window.workload.CopyFrom(v1.Workload(namespace="p=r o,d", pod=pod, service="chat"))
    place.put(record(topics.INFERENCE, window))

    (found,) = place.store.latest("service", where={"namespace": "p=r o,d"})

    assert found.values["requests"][0] == 2**63 - 1
    assert place.store.series("device") == []


def test_alert_transitions_of_one_instant_are_two_points(place: Filled) -> None:
    statuses = (v1.AlertStatus.ALERT_STATUS_PENDING, v1.AlertStatus.ALERT_STATUS_FIRING)
    fired = v1.Alert(fingerprint="f", episode="f-1", status=statuses[1], rule="hot", cluster="c1", node="n1", entity="device/a")
    fired.at_ns, fired.value = place.t0, 91.5
    pending = v1.Alert()
    pending.CopyFrom(fired)
    pending.status = statuses[0]
    alerts = [pending, fired]
    place.put(*(record(topics.ALERTS, a, i) for i, a in enumerate(alerts)))

    found = {dict(row.tags)["status"]: row.values["value"][0] for row in place.store.latest("alert")}

    assert found == {"pending": 91.5, "firing": 91.5}


@pytest.mark.parametrize(
    ("measurement", "field", "where", "named"),
    [
        ("devices", "power_watts", None, "devices"),
        ("device", "power", None, "power"),
        ("device", "serial", None, "serial"),
        ("device", "power_watts", {"serial": "1"}, "serial"),
    ],
    ids=["measurement", "field", "text", "tag"],
)
def test_an_unknown_name_is_a_key_error_that_names_it(
    place: Filled, measurement: str, field: str, where: dict[str, str] | None, named: str
) -> None:
    with pytest.raises(KeyError, match=named):
        place.store.range(measurement, [field], start_ns=0, end_ns=1, where=where)  # type: ignore[arg-type]  # what a user may type


def test_rows_give_whole_points_oldest_first_with_their_lists(place: Filled) -> None:
    said = v1.Forecast(cluster="c1", node="n1", entity="device/nvidia:a", uid="nvidia:a", metric="memory_used_bytes", model="holt")
    said.p50[:], said.p05[:], said.p95[:] = [1e9, 2.5e9], [0.5e9, 1e9], [2e9, 4e9]
    said.made_at_ns, said.history_until_ns, said.step_ns = place.t0 + SECOND_NS, place.t0, SECOND_NS
    back = v1.Forecast(cluster="c1", node="n1", entity="device/nvidia:a", uid="nvidia:a", metric="memory_used_bytes", withdrawn=True)
    back.made_at_ns, back.withdrawn_reason = place.t0 + 3 * SECOND_NS, "receded"
    other = v1.Forecast(cluster="c1", node="n1", entity="device/nvidia:a", metric="power_watts", made_at_ns=place.t0 + 2 * SECOND_NS)
    place.put(*(record(topics.FORECASTS, f, i) for i, f in enumerate((back, said, other))))

    first, second = place.store.rows(
        "forecast", start_ns=place.t0, end_ns=place.t0 + 4 * SECOND_NS, where={"metric": "memory_used_bytes", "entity": "device/nvidia:a"}
    )

    assert (first.at_ns, second.at_ns) == (place.t0 + SECOND_NS, place.t0 + 3 * SECOND_NS)
    assert dict(first.tags) == {"cluster": "c1", "node": "n1", "entity": "device/nvidia:a", "metric": "memory_used_bytes"}
    assert [json.loads(str(first.fields[name])) for name in ("p05", "p50", "p95")] == [[0.5e9, 1e9], [1e9, 2.5e9], [2e9, 4e9]]
    assert (first.fields["model"], first.fields["withdrawn"]) == ("holt", False)
    assert (second.fields["withdrawn"], second.fields["withdrawn_reason"]) == (True, "receded")
    assert "p50" not in second.fields
    every = place.store.rows("forecast", start_ns=place.t0, end_ns=place.t0 + 4 * SECOND_NS)
    assert [dict(row.tags)["metric"] for row in every] == ["memory_used_bytes", "power_watts", "memory_used_bytes"]
    assert place.store.rows("forecast", start_ns=place.t0 + 4 * SECOND_NS, end_ns=place.t0 + 5 * SECOND_NS) == []


def test_rows_of_an_unknown_measurement_are_a_key_error(place: Filled) -> None:
    with pytest.raises(KeyError, match="forecasts"):
        place.store.rows("forecasts", start_ns=0, end_ns=1)  # type: ignore[arg-type]  # what a user may type
