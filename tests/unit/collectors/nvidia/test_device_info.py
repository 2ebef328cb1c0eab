"""What a card says of itself."""

from __future__ import annotations

import pytest

from collectors.nvidia.device_info import Versions, cuda_version, device_info, set_fabric, set_peers
from collectors.nvidia.identity import cpu_list
from collectors.nvidia.reply import Failed, Replies, Reply
from schemas.telemetry import v1

FULL: Replies = {
    "uuid": "GPU-1",
    "name": "NVIDIA H100",
    "serial": Failed(3),
    "vbios": "96",
    "board_part": "692",
    "bdf": "00000000:4F:00.0",
    "module": 7,
    "power_limit_max_milliwatts": 700_000,
    "minor_number": 3,
    "numa_node": 1,
    "architecture": 9,
    "compute_capability": "9.0",
    "cpu_affinity": "0-31",
    "virtualization": 0,
}


def made(replies: Replies | None = None, versions: Versions | None = None) -> v1.DeviceInfo:
    info = device_info(FULL | (replies or {}), "n", 3, versions)
    assert info is not None
    return info


def test_identity() -> None:
    info = made(versions=Versions("590.48.01", "13.590.48.01", 13010))
    assert (info.uid, info.bdf, info.serial, info.slot, info.index) == ("nvidia:GPU-1", "0000:4f:00.0", "", "7", 3)
    assert info.power_limit_max_watts == 700
    assert info.kind == v1.DeviceKind.DEVICE_KIND_ACCELERATOR
    assert (info.minor_number, info.numa_node, info.architecture, info.compute_capability) == (3, 1, "hopper", "9.0")
    assert (info.cpu_affinity, info.virtualization) == ("0-31", "none")
    assert (info.library_version, info.runtime_version) == ("13.590.48.01", "13.1")


def test_what_is_not_known_is_not_set() -> None:
    info = made({"minor_number": Failed(3), "numa_node": -1, "architecture": 99, "virtualization": Failed(3), "module": Failed(3)})
    assert not info.HasField("minor_number")
    assert not info.HasField("numa_node")
    assert (info.architecture, info.virtualization, info.slot) == ("", "", "")
    assert not info.HasField("tray_index")


def test_a_place_in_a_rack_scale_machine() -> None:
    info = made({"chassis_serial": "1820325190042", "slot": 11, "tray": 3})
    assert (info.chassis_serial, info.slot, info.tray_index) == ("1820325190042", "11", 3)


def test_without_a_uuid_the_address_on_the_node_is_the_identity() -> None:
    info = device_info({"uuid": Failed(999), "bdf": "00000000:4F:00.0"}, "n", 0)
    assert info is not None
    assert info.uid == "nvidia:n:0000:4f:00.0"


def test_without_uuid_and_address_there_is_no_identity() -> None:
    assert device_info({"uuid": Failed(15), "bdf": Failed(15)}, "n", 0) is None


def test_the_fabric_is_named_once_the_card_has_joined_it() -> None:
    info = made()
    cluster: Replies = {"fabric_cluster": bytes(range(16)), "fabric_clique": 5}  # type: ignore[dict-item]  # ctypes gives bytes for this one
    set_fabric(info, cluster | {"fabric_state": 3})
    assert (info.fabric_cluster_uuid, info.fabric_clique_id) == ("00010203-0405-0607-0809-0a0b0c0d0e0f", 5)
    set_fabric(info, cluster | {"fabric_state": 2})
    assert info.fabric_cluster_uuid == ""
    assert not info.HasField("fabric_clique_id")


def test_peers() -> None:
    info = made()
    set_peers(info, {"nvidia:b": 50, "nvidia:a": 10}, {"nvidia:a": 4})
    assert [(peer.uid, v1.TopologyPath.Name(peer.path).removeprefix("TOPOLOGY_PATH_"), peer.links) for peer in info.peers] == [
        ("nvidia:a", "SINGLE_SWITCH", 4),
        ("nvidia:b", "SYSTEM", 0),
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [([0], ""), ([1], "0"), ([0xFFFFFFFF, 0xFFFFFFFF], "0-31,64-95"), ([0b1011], "0-1,3"), ([1 << 63, 1], "63-64")],
)
def test_a_set_of_cpus_as_the_kernel_writes_it(words: list[int], text: str) -> None:
    assert cpu_list(words) == text


@pytest.mark.parametrize(("reply", "text"), [(13010, "13.1"), (12020, "12.2"), (Failed(3), ""), (0, "")])
def test_cuda_version(reply: Reply, text: str) -> None:
    assert cuda_version(reply) == text
