"""vGPUs: on their host each is a device of its own, in a guest the card says what it is and whether it has its licence."""

from __future__ import annotations

import pytest

from schemas.catalogue import CATALOGUE
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from tests.unit.collectors.nvidia.rig import Rig, absent, values

__all__ = ["fake_nvml", "fake_nvml_library"]
CARD = "nvidia:GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a90"


def vgpu(number: int, **more: object) -> dict[str, object]:
    return {
        "id": 3_251_634_190 + number,
        "uuid": f"9c2f7d10-0000-11ee-8f2e-00000000000{number}",
        "vm_id": f"vm-{number}",
        "type_id": 1100 + number,
        "type_name": f"GRID H100-{10 * number}C",
        "memory_total_bytes": 10 * number * 2**30,
        "memory_used_bytes": 6 * 2**30 + number,
        "licensed": number % 2,
        "sm_percent": 30 + number,
        "memory_percent": 20 + number,
        "encoder_percent": number,
        "decoder_percent": 0,
    } | more


@pytest.fixture
def host(fake_nvml: nvml.State) -> nvml.State:
    fake_nvml.device(0).set(virtualization_mode=3, vgpus=[vgpu(1), vgpu(2)])
    fake_nvml.device(1).set(virtualization_mode=3, vgpus=[])
    return fake_nvml


def test_each_vgpu_is_a_device(host: nvml.State) -> None:
    rig = Rig(host)
    card, one, two, other = rig.read()
    assert card.info.virtualization == "host_vgpu"
    assert one.uid == "nvidia:9c2f7d10-0000-11ee-8f2e-000000000001"
    assert (one.info.parent_uid, one.info.kind, one.info.virtualization) == (CARD, v1.DeviceKind.DEVICE_KIND_PARTITION, "vgpu")
    assert (one.info.partition.profile, one.info.partition.vm_id) == ("GRID H100-10C", "vm-1")
    assert not one.info.partition.HasField("gpu_instance_id")
    said = values(one)
    assert said["memory_used_bytes"] == 6 * 2**30 + 1
    assert said["memory_total_bytes"] == 10 * 2**30
    assert said["utilization_ratio"] == pytest.approx(0.31)
    assert said["memory_busy_ratio"] == pytest.approx(0.21)
    assert said["encoder_utilization_ratio"] == pytest.approx(0.01)
    assert (one.license_valid, two.license_valid) == (True, False)
    assert values(one).keys() | absent(one).keys() == {metric.name for metric in CATALOGUE}
    assert {absent(one)[name] for name in ("power_watts", "energy_joules", "temperature_celsius")} == {"not_supported"}
    assert other.uid != CARD
    rig.plugin.close()


def test_more_memory_than_32_bits_hold_is_read_whole(host: nvml.State) -> None:
    host.device(0).set(vgpus=[vgpu(1, memory_used_bytes=9 * 2**30)])
    rig = Rig(host)
    assert rig.read()[1].memory_used_bytes == 9 * 2**30
    rig.plugin.close()


def test_vgpus_come_and_go_as_a_new_cut(host: nvml.State) -> None:
    rig = Rig(host)
    rig.read()
    host.device(0).set(vgpus=[vgpu(2), vgpu(3)])
    uids = [sample.uid[-1] for sample in rig.read(slow=False)]
    assert uids == ["0", "2", "3", "1"]  # the card, its vGPUs, the other card
    (event,) = rig.events()
    assert rig.said() == ["reconfigured"]
    assert (event.uid, event.details["went"][-1], event.details["came"][-1]) == (CARD, "1", "3")
    rig.plugin.close()


def test_what_a_vgpu_cannot_say_is_absent_with_its_reason(host: nvml.State) -> None:
    host.device(0).set(vgpus=[vgpu(1, memory_used_bytes=nvml.code(999), memory_total_bytes=None)])
    host.fail("nvmlDeviceGetVgpuInstancesUtilizationInfo", 4)
    rig = Rig(host)
    said = absent(rig.read()[1])
    assert said["memory_used_bytes"] == "error"
    assert said["memory_total_bytes"] == "not_supported"
    assert said["utilization_ratio"] == "no_permission"
    rig.plugin.close()


def test_a_card_that_serves_no_vgpus_has_none(fake_nvml: nvml.State) -> None:
    rig = Rig(fake_nvml)
    assert len(rig.read()) == 2
    rig.plugin.close()


@pytest.mark.parametrize(
    ("mode", "features", "says"),
    [
        (2, [{"code": 3, "state": 1, "enabled": 1}], True),
        (2, [{"code": 3, "state": 0, "enabled": 1}, {"code": 2, "state": 0}], False),
        (2, [], "not_supported"),
        (2, nvml.code(999), "error"),
        (2, nvml.code(3), "not_supported"),
        (0, [{"code": 3, "state": 0}], "not_supported"),
        (1, [{"code": 3, "state": 0}], "not_supported"),
    ],
    ids=["licensed", "not licensed", "needs none", "unknown", "old driver", "bare metal", "pass-through"],
)
def test_a_guest_says_whether_its_vgpu_has_its_licence(fake_nvml: nvml.State, mode: int, features: object, says: object) -> None:
    fake_nvml.every.set(virtualization_mode=mode, licensable_features=features)
    rig = Rig(fake_nvml)
    card = rig.read()[0]
    assert (card.license_valid if card.HasField("license_valid") else absent(card)["license_valid"]) == says
    rig.plugin.close()
