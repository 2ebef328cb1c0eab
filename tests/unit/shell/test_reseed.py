"""What the embedded bus lost comes back from the store: open episodes as they were, closed ones not, and the devices."""

from collections.abc import Mapping

from schemas import topics
from schemas.codec import decode
from schemas.flow import Out, Record
from schemas.store import Latest, Scalar
from schemas.telemetry import v1
from xpulse.local.reseed import inventory, open_alerts

S = 1_000_000_000


def row(at: int, status: str, episode: str = "f-1", **fields: Scalar) -> Latest:
    tags = {"cluster": "c", "node": "n", "rule": "memory_nearly_full", "entity": "device/a", "status": status}
    values: Mapping[str, Scalar] = {
        "fingerprint": "f",
        "episode": episode,
        "kind": "threshold",
        "severity": "critical",
        "mode": "notify",
        "started_at_ns": 1 * S,
        "fired_at_ns": 4 * S,
        "value": 3.0,
        "workload": "chat",
        "incident": "e-0",
        "evidence": '{"limit": "76 GiB"}',
        **fields,
    }
    return Latest(tuple(sorted(tags.items())), at, {k: (v, at) for k, v in values.items()}, {})


def message(out: Out) -> object:
    return decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, 0))


def test_an_open_episode_comes_back_as_it_was() -> None:
    (out,) = open_alerts([row(4 * S, "firing")], 100 * S)
    state = message(out)
    assert isinstance(state, v1.AlertState)
    assert (out.topic, out.key) == (topics.ALERT_STATE, b"f")
    alert = state.alert
    assert (alert.episode, alert.status, alert.started_at_ns, alert.fired_at_ns) == ("f-1", v1.AlertStatus.ALERT_STATUS_FIRING, S, 4 * S)
    assert (alert.severity, alert.kind, alert.mode) == (
        v1.Severity.SEVERITY_CRITICAL,
        v1.FindingKind.FINDING_KIND_THRESHOLD,
        v1.AlertMode.ALERT_MODE_NOTIFY,
    )
    assert alert.incident == "e-0"
    assert (alert.owner.workload, alert.evidence["limit"], alert.value) == ("chat", "76 GiB", 3.0)
    assert not alert.HasField("limit"), "unknown is not zero"
    assert state.last_finding.valid_until_ns > 100 * S
    assert state.findings_offset == -1


def test_a_resolved_episode_does_not() -> None:
    assert open_alerts([row(4 * S, "firing"), row(9 * S, "resolved")], 100 * S) == []


def test_an_older_resolved_episode_does_not_hide_the_open_one() -> None:
    found = open_alerts([row(9 * S, "resolved", "f-1"), row(40 * S, "firing", "f-2")], 100 * S)
    assert [message(out).alert.episode for out in found] == ["f-2"]  # type: ignore[attr-defined]  # an AlertState


def test_devices_come_back() -> None:
    tags = (("cluster", "c"), ("kind", "accelerator"), ("model", "H100"), ("node", "n"), ("uid", "nvidia:GPU-1"), ("vendor", "nvidia"))
    values: Mapping[str, tuple[Scalar, int]] = {"index": (3, S), "serial": ("SN1", S), "simulated": (True, S)}
    (out,) = inventory([Latest(tags, S, values, {})], 100 * S)
    record = message(out)
    assert isinstance(record, v1.InventoryRecord)
    device = record.device
    assert out.key == b"c/n/nvidia:GPU-1"
    assert (device.model, device.index, device.serial, device.kind) == ("H100", 3, "SN1", v1.DeviceKind.DEVICE_KIND_ACCELERATOR)
