"""Batches are numbered without gaps; slow fields, identity and absences travel at first, on change and every 60th time."""

from __future__ import annotations

import time

import pytest

from collectors.contract import NodeReading, Reading
from collectors.events import device_event
from collectors.publisher import Publisher, event_out
from schemas import topics
from schemas.builder import SampleBuilder
from schemas.catalogue import SLOW
from schemas.codec import decode
from schemas.flow import Out, Record
from schemas.identity import NodeRef, complete_info
from schemas.telemetry import v1
from schemas.values import Reason

NODE = NodeRef("prod-a", "gpu-node-0042")
EPOCH = 1_790_000_000_000_000_000
FAST = {
    "utilization_ratio": 0.973,
    "memory_used_bytes": 71_234_567_890,
    "power_watts": 631.95,
    "temperature_celsius": 59.0,
    "sm_clock_hertz": 1.98e9,
    "memory_clock_hertz": 2.619e9,
    "energy_joules": 918273645.123,
    "pcie_tx_bytes": 3_020_371_496_512,
    "pcie_rx_bytes": 6_893_142_392_832,
    "interconnect_tx_bytes": 4_073_741_824_000_123,
    "interconnect_rx_bytes": 4_147_483_648_000_123,
    "sm_active_ratio": 0.975,
    "tensor_active_ratio": 0.4125,
    "dram_active_ratio": 0.1075,
    "memory_temperature_celsius": 55.0,
    "throttle_reasons": 4,
    "throttled_thermal_seconds": 12.25,
    "throttled_power_seconds": 918.5,
    "performance_state": 0,
}
SLOW_VALUES = {
    "memory_total_bytes": 85_520_809_984,
    "memory_reserved_bytes": 502_267_904,
    "power_limit_watts": 700.0,
    "sm_clock_max_hertz": 1.98e9,
    "memory_clock_max_hertz": 2.619e9,
    "pcie_link_generation": 5,
    "pcie_link_generation_max": 5,
    "pcie_link_width": 16,
    "pcie_link_width_max": 16,
    "pcie_replays": 1009,
    "ecc_corrected_volatile_errors": 300,
    "ecc_uncorrected_volatile_errors": 0,
    "ecc_corrected_aggregate_errors": 70_000,
    "ecc_uncorrected_aggregate_errors": 2,
    "remapped_rows_correctable": 0,
    "remapped_rows_uncorrectable": 1,
    "remapped_rows_pending": 0,
    "remapped_rows_failed": 0,
    "interconnect_errors": 123,
    "interconnect_links_active": 18,
    "temperature_slowdown_celsius": 87.0,
    "temperature_shutdown_celsius": 93.0,
}


def sample(
    index: int = 0,
    *,
    slow: bool = False,
    absent: dict[str, Reason] | None = None,
    serial: str = "1652923014527",
    changed: dict[str, float] | None = None,
) -> v1.DeviceSample:
    builder = SampleBuilder(f"nvidia:GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a{0x90 + index:02x}", index)
    for name, value in (FAST | (SLOW_VALUES if slow else {}) | (changed or {})).items():
        builder.set(name, value)
    for name, reason in ({"fan_ratio": "not_supported"} if absent is None else absent).items():
        builder.absent(name, reason)  # type: ignore[arg-type]  # the default's literal
    builder.info(
        v1.DeviceInfo(
            uid=f"nvidia:GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a{0x90 + index:02x}",
            vendor="nvidia",
            model="NVIDIA H100 80GB HBM3",
            serial=serial,
            kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR,
            index=index,
            bdf=f"0000:{16 + index:02x}:00.0",
            slot=str(index),
            firmware_version="96.00.A5.00.01",
            board_part="692-2G520-0200-000",
            power_limit_max_watts=700,
        )
    )
    return builder.build()


def reading(*samples: v1.DeviceSample, node: NodeRef | None = None, at_ns: int = EPOCH + 5) -> Reading:
    return Reading((NodeReading(at_ns, samples, node=node, driver_epoch=41_000, driver_version="590.48.01"),))


def publisher(**settings: object) -> Publisher:
    defaults = {"agent_epoch": EPOCH, "interval_ns": 10**9, "boot_id": "d2f5f0a4-6d8a-4a8e-9f33-0a3c1f7b9a55"}
    return Publisher("nvidia", NODE, **(defaults | settings))  # type: ignore[arg-type]  # keyword names are checked at the call


def message(out: Out) -> object:
    return decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, 0))


def batches(outs: list[Out]) -> list[v1.SampleBatch]:
    found = [message(out) for out in outs if out.topic == topics.SAMPLES]
    return [batch for batch in found if isinstance(batch, v1.SampleBatch)]


def only(outs: list[Out]) -> v1.SampleBatch:
    (batch,) = batches(outs)
    return batch


def test_a_batch_says_who_when_and_in_which_epoch() -> None:
    batch = only(publisher().outs(reading(sample()), sent_at_ns=EPOCH + 9))
    assert (batch.cluster, batch.node, batch.source) == ("prod-a", "gpu-node-0042", "nvidia")
    assert (batch.agent_epoch, batch.sequence) == (EPOCH, 0)
    assert (batch.taken_at_ns, batch.sent_at_ns, batch.interval_ns) == (EPOCH + 5, EPOCH + 9, 10**9)
    assert (batch.boot_id, batch.driver_epoch) == ("d2f5f0a4-6d8a-4a8e-9f33-0a3c1f7b9a55", 41_000)


def test_sequences_are_gapless_for_each_node() -> None:
    other = NodeRef("prod-b", "gpu-node-0042")
    pub = publisher()
    seen: dict[tuple[str, str], list[int]] = {}
    for node in (None, other, None, other, None):
        batch = only(pub.outs(reading(sample(), node=node), 0))
        seen.setdefault((batch.cluster, batch.node), []).append(batch.sequence)
    assert seen == {NODE: [0, 1, 2], other: [0, 1]}


def test_a_batch_of_each_node_has_its_own_key() -> None:
    pub = publisher()
    outs = pub.outs(reading(sample(), node=NodeRef("x", "y")), 0) + pub.outs(reading(sample()), 0)
    assert [out.key for out in outs if out.topic == topics.SAMPLES] == [b"x/y", b"prod-a/gpu-node-0042"]


def test_the_first_sample_is_full() -> None:
    (device,) = only(publisher().outs(reading(sample(slow=True)), 0)).devices
    assert device.full
    assert device.power_limit_watts == 700
    assert device.info.serial == "1652923014527"
    assert [list(a.field_number) for a in device.absences] == [[22]]


def test_a_sample_without_change_is_thin() -> None:
    pub = publisher()
    pub.outs(reading(sample(slow=True)), 0)
    (device,) = only(pub.outs(reading(sample(slow=True)), 0)).devices
    assert not device.full
    assert device.power_watts == pytest.approx(631.95)
    assert not device.HasField("info")
    assert not device.absences
    assert not any(device.HasField(metric.name) for metric in SLOW)


@pytest.mark.parametrize(
    "then",
    [
        {"slow": True, "changed": {"power_limit_watts": 500.0}},
        {"absent": {"fan_ratio": "lost"}},
        {"absent": {}},
        {"absent": {"fan_ratio": "not_supported", "ecc_corrected_volatile_errors": "error"}},
        {"serial": "another"},
    ],
    ids=["slow value", "reason", "absence ends", "slow absence", "identity"],
)
def test_a_change_makes_the_sample_full(then: dict[str, object]) -> None:
    pub = publisher()
    pub.outs(reading(sample(slow=True)), 0)
    pub.outs(reading(sample()), 0)
    (device,) = only(pub.outs(reading(sample(**then)), 0)).devices  # type: ignore[arg-type]  # a table of keyword arguments
    assert device.full
    (after,) = only(pub.outs(reading(sample(**(then | {"slow": False, "changed": None}))), 0)).devices  # type: ignore[arg-type]  # as above
    assert not after.full


def test_only_the_changed_device_is_full() -> None:
    pub = publisher()
    pub.outs(reading(sample(0), sample(1)), 0)
    batch = only(pub.outs(reading(sample(0), sample(1, absent={})), 0))
    assert [device.full for device in batch.devices] == [False, True]


def test_every_sixtieth_batch_is_full_and_repeats_the_slow_fields_last_read() -> None:
    pub = publisher()
    full = []
    for i in range(121):
        (device,) = only(pub.outs(reading(sample(slow=i == 0)), 0)).devices
        if device.full:
            full.append((i, device.memory_total_bytes, device.interconnect_links_active))
    assert full == [(i, 85_520_809_984, 18) for i in (0, 60, 120)]


def test_a_slow_field_that_got_lost_is_not_repeated_as_a_value() -> None:
    pub = publisher()
    pub.outs(reading(sample(slow=True)), 0)
    (device,) = only(pub.outs(reading(sample(absent={"power_limit_watts": "lost"})), 0)).devices
    assert device.full
    assert not device.HasField("power_limit_watts")
    assert device.memory_total_bytes == 85_520_809_984


def test_a_slow_field_that_comes_back_is_no_longer_absent() -> None:
    pub = publisher()
    pub.outs(reading(sample(absent={"power_limit_watts": "error"})), 0)
    (device,) = only(pub.outs(reading(sample(absent={}, changed={"power_limit_watts": 650.0})), 0)).devices
    assert (device.full, device.power_limit_watts, len(device.absences)) == (True, 650.0, 0)


def test_after_a_failed_delivery_the_next_batch_is_full() -> None:
    pub = publisher()
    pub.outs(reading(sample(slow=True)), 0)
    pub.resend()
    (device,) = only(pub.outs(reading(sample()), 0)).devices
    assert (device.full, device.power_limit_watts) == (True, 700.0)


def test_a_device_that_was_away_starts_full() -> None:
    pub = publisher()
    pub.outs(reading(sample(0), sample(1)), 0)
    pub.outs(reading(sample(0)), 0)
    batch = only(pub.outs(reading(sample(0), sample(1)), 0))
    assert [device.full for device in batch.devices] == [False, True]


def test_the_driver_version_travels_only_with_full_samples() -> None:
    pub = publisher()
    versions = [only(pub.outs(reading(sample()), 0)).driver_version for _ in range(2)]
    assert versions == ["590.48.01", ""]


def test_what_the_batch_says_is_left_out_of_the_sample_and_can_be_put_back() -> None:
    batch = only(publisher().outs(reading(sample()), 0))
    device = batch.devices[0]
    assert not device.info.uid
    assert not device.info.vendor
    full = complete_info(batch, device)
    assert (full.uid, full.vendor, full.driver_version) == (device.uid, "nvidia", "590.48.01")
    assert (full.cluster, full.node, full.model, full.slot) == (*NODE, "NVIDIA H100 80GB HBM3", "0")


def test_inventory_is_said_at_first_and_on_change_only() -> None:
    pub = publisher()
    said = [
        [out.key for out in pub.outs(reading(sample(serial=serial)), 0) if out.topic == topics.INVENTORY] for serial in ("a", "a", "b", "b")
    ]
    key = b"prod-a/gpu-node-0042/nvidia:GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a90"
    assert said == [[key], [], [key], []]


def test_inventory_is_complete() -> None:
    outs = publisher().outs(reading(sample()), 0)
    record = message(next(out for out in outs if out.topic == topics.INVENTORY))
    assert isinstance(record, v1.InventoryRecord)
    assert record.observed_at_ns == EPOCH + 5
    assert record.device.board_part == "692-2G520-0200-000"
    assert (record.device.driver_version, record.device.node) == ("590.48.01", "gpu-node-0042")


def test_the_own_node_is_said_once_and_never_for_another() -> None:
    info = v1.NodeInfo(cluster=NODE.cluster, node=NODE.node, labels={"rack": "r1"})
    pub = publisher(node_info=info)
    order = (NodeRef("c", "other"), None, None)
    nodes = [[out.key for out in pub.outs(reading(node=node), 0) if out.topic == topics.INVENTORY] for node in order]
    assert nodes == [[], [b"prod-a/gpu-node-0042"], []]


EVENTS = [
    (device_event(NODE, "nvidia", "lost", 5, "gone"), topics.DEVICE_EVENTS, b"prod-a/gpu-node-0042"),
    (v1.ContextEvent(entity="service/c/ns/web", cluster="c", node="n", kind=1, at_ns=5), topics.CONTEXT_EVENTS, b"c/n"),  # type: ignore[arg-type]  # an enum's number
    (v1.ContextEvent(entity="service/c/ns/web", cluster="c", kind=1, at_ns=5), topics.CONTEXT_EVENTS, b"service/c/ns/web"),  # type: ignore[arg-type]  # as above
    (v1.AllocationSnapshot(cluster="c", node="n", taken_at_ns=5), topics.ALLOCATIONS, b"c/n"),
    (v1.AllocationChange(cluster="c", node="n", kind=1, at_ns=5), topics.ALLOCATION_CHANGES, b"c/n"),  # type: ignore[arg-type]  # as above
    (v1.InferenceWindow(cluster="c", node="n", started_at_ns=1, ended_at_ns=5), topics.INFERENCE, b"c/n"),
    (
        v1.InventoryRecord(observed_at_ns=5, device=v1.DeviceInfo(cluster="c", node="n", uid="nvidia:x")),
        topics.INVENTORY,
        b"c/n/nvidia:x",
    ),
    (v1.InventoryRecord(observed_at_ns=5, node=v1.NodeInfo(cluster="c", node="n")), topics.INVENTORY, b"c/n"),
]


@pytest.mark.parametrize(("event", "topic", "key"), EVENTS, ids=[f"{type(row[0]).__name__}-{row[2].decode()}" for row in EVENTS])
def test_each_event_goes_to_its_topic_under_its_key(event: v1.DeviceEvent, topic: str, key: bytes) -> None:
    out = event_out(event)
    assert (out.topic, out.key) == (topic, key)
    assert message(out) == event


def test_an_event_without_an_id_gets_one_that_its_content_repeats() -> None:
    first, second = (v1.DeviceEvent(cluster="c", node="n", kind=4, at_ns=5, text="x") for _ in range(2))  # type: ignore[arg-type]  # an enum's number
    assert event_out(first).value == event_out(second).value
    assert first.id


def test_eight_devices_stay_small_on_the_wire() -> None:
    pub = publisher()
    sizes = []
    for slow in (True, False):
        outs = pub.outs(reading(*(sample(i, slow=slow) for i in range(8))), EPOCH + 9)
        (value,) = [out.value for out in outs if out.topic == topics.SAMPLES]
        sizes.append(len(value or b""))
    full, thin = sizes
    assert full < 3000
    assert thin < 2000


def test_a_tick_costs_tens_of_microseconds_a_device() -> None:
    pub = publisher()
    ticks = [reading(*(sample(i) for i in range(8))) for _ in range(40)]
    best = float("inf")
    for tick in ticks:
        started = time.thread_time()
        pub.outs(tick, 0)
        best = min(best, time.thread_time() - started)
    assert best / 8 < 100e-6
