"""?names=dcgm is line for line what dcgm-exporter prints of the same values (golden files made by hand from its formats)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from schemas.catalogue import BY_NAME
from schemas.dcgm import table
from schemas.dcgm_names import RATED, Trail, encode
from schemas.device_state import DeviceState, FleetState
from schemas.exposition import parse
from schemas.telemetry import v1
from schemas.values import Value
from tests.unit.schemas.fleet_states import NODE, UID, device, fleet, info, instance

GOLDEN = Path(__file__).parents[2] / "data" / "dcgm_exposition"
MIB = 1 << 20

H100: dict[str, Value] = {
    "sm_clock_hertz": 1980e6,
    "memory_clock_hertz": 2619e6,
    "memory_temperature_celsius": 51.0,
    "temperature_celsius": 43.0,
    "power_watts": 123.21499633789062,  # 123.215 as the wire's float has it
    "energy_joules": 126272101.025,
    "pcie_replays": 3,
    "utilization_ratio": 0.4699999988079071,
    "memory_busy_ratio": 0.12999999523162842,
    "encoder_utilization_ratio": 0.0,
    "decoder_utilization_ratio": 0.0,
    "memory_total_bytes": 81559 * MIB,
    "memory_used_bytes": 45120 * MIB + 5,
    "memory_reserved_bytes": 639 * MIB,
    "remapped_rows_uncorrectable": 0,
    "remapped_rows_correctable": 2,
    "remapped_rows_failed": False,
    "license_valid": False,
    "graphics_active_ratio": 0.9712340235710144,
    "tensor_active_ratio": 0.3125,
    "dram_active_ratio": 0.25,
    "throttled_thermal_seconds": 1.5,
    "throttle_reasons": 4,
    "performance_state": 0,
}
TRAIL = Trail(
    last_xid=79,
    last_xid_text="GPU has fallen off the bus",
    last_xid_at_ns=5,
    xids={45: 168_924, 79: 1},
    rates={"pcie_tx_bytes": 3020371496.0, "pcie_rx_bytes": 3893142392.0, "interconnect_tx_bytes": 1024e6, "interconnect_rx_bytes": 1024e6},
)


def lines(name: str, *devices: DeviceState, trail: Trail | None = None) -> list[str]:
    trails = {(NODE, UID): trail} if trail else {}
    return [line for line in encode(fleet(*devices), trails).splitlines() if line.startswith((f"{name}{{",))]


def values(name: str, *devices: DeviceState, trail: Trail | None = None) -> list[str]:
    return [line.rpartition(" ")[2] for line in lines(name, *devices, trail=trail)]


def golden(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def without_help(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("# HELP")) + "\n"


def test_a_whole_card() -> None:
    assert without_help(encode(fleet(device(values=H100)), {(NODE, UID): TRAIL})) == golden("h100.prom")


def test_a_card_in_two_mig_instances() -> None:
    board = device(values=H100)
    of_instance: dict[str, Value] = {
        "memory_total_bytes": 20096 * MIB,
        "memory_used_bytes": 15866 * MIB,
        "memory_reserved_bytes": 0,
        "graphics_active_ratio": 0.5,
    }
    parts = (instance(7, "1g.10gb", values={"memory_used_bytes": 12 * MIB}), instance(3, "2g.20gb", values=of_instance))
    assert without_help(encode(fleet(board, *parts), {})) == golden("h100_mig.prom")


def test_every_line_has_help_and_reads_back() -> None:
    text = encode(fleet(device(values=H100)), {(NODE, UID): TRAIL})
    assert text.count("# HELP ") == text.count("# TYPE ") > 20


def test_the_newer_name_of_the_host_label() -> None:
    text = encode(fleet(device(values=H100)), {}, "hostname")
    assert ',hostname="gpu-01",' in text
    assert "Hostname" not in text


# peers.md D14: dcgm-exporter#317: each instance repeats the parent's energy 126272101025 mJ; sums came out seven times too large.
def test_the_boards_energy_is_printed_once_under_mig() -> None:
    parts = [instance(n, "1g.10gb", values={"memory_used_bytes": MIB}) for n in range(7, 14)]
    assert values("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", device(values=H100), *parts) == ["126272101025"]


# peers.md D16: dcgm-exporter#380/#103: FB_FREE under MIG, FB_* of 0 with an old DCGM.
def test_free_memory_only_where_all_of_its_terms_are_known() -> None:
    assert values("DCGM_FI_DEV_FB_FREE", device(values=H100)) == ["35800"]
    assert values("DCGM_FI_DEV_FB_FREE", device(values={k: v for k, v in H100.items() if k != "memory_reserved_bytes"})) == []


# peers.md D60: dcgm-exporter PR#589: violation times are nanoseconds.
def test_throttled_time_is_in_nanoseconds() -> None:
    assert values("DCGM_FI_DEV_THERMAL_VIOLATION", device(values=H100)) == ["1500000000"]


# peers.md D7: dcgm-exporter#721: PROF_PCIE_*_BYTES always 0 on an L40S whose counters move.
def test_pcie_rates_come_from_the_byte_counters() -> None:
    assert values("DCGM_FI_PROF_PCIE_TX_BYTES", device(values={}), trail=TRAIL) == ["3020371496"]
    assert values("DCGM_FI_PROF_PCIE_RX_BYTES", device(values={}), trail=TRAIL) == ["3893142392"]
    assert values("DCGM_FI_PROF_PCIE_TX_BYTES", device(values={})) == []  # not known is not 0
    assert values("DCGM_FI_PROF_PCIE_TX_BYTES", device(values={"pcie_tx_bytes_per_second": 7.0}), trail=TRAIL) == ["7"]


def test_nvlink_is_both_directions_in_dcgms_odd_unit_unless_dcgm_said_it() -> None:
    assert values("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", device(values={}), trail=TRAIL) == ["2000"]
    said = device(values={}, vendor_metrics={"dcgm_nvlink_bytes_per_second": 1024000.0})
    assert values("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", said, trail=TRAIL) == ["1"]


# peers.md D73: what its users expect of the gauge, and beside it the count that shows the same Xid twice.
def test_the_last_xid_is_a_gauge_and_each_is_counted() -> None:
    (calm,) = lines("DCGM_FI_DEV_XID_ERRORS", device(values={}))
    assert calm.endswith(',err_code="0",err_msg="No Error"} 0')
    (sick,) = lines("DCGM_FI_DEV_XID_ERRORS", device(values={}), trail=TRAIL)
    assert sick.endswith(',err_code="79",err_msg="GPU has fallen off the bus"} 79')
    assert values("DCGM_EXP_XID_ERRORS_COUNT", device(values={}), trail=TRAIL) == ["168924", "1"]
    assert lines("DCGM_EXP_XID_ERRORS_COUNT", device(values={})) == []


def test_an_xid_of_a_mig_instance_is_its_cards() -> None:
    part = instance(7, "1g.10gb", values={})
    text = encode(fleet(device(values={}), part), {(NODE, part.uid): TRAIL, (NODE, UID): Trail(xids={45: 1})})
    assert 'xid="45"} 168925' in text
    assert 'GPU_I_ID="7",Hostname="gpu-01",DCGM_FI_DRIVER_VERSION="580.95.05",err_code' not in text


def test_compute_instances_of_one_gpu_instance_do_not_double_its_line() -> None:
    first = instance(3, "2g.20gb", values={"memory_used_bytes": MIB})
    second = dataclasses.replace(first, uid="nvidia:MIG-x", values={"memory_used_bytes": 9 * MIB})
    second.info.partition.compute_instance_id = 0
    other = v1.DeviceInfo()
    other.CopyFrom(first.info)
    other.partition.compute_instance_id = 1
    assert values("DCGM_FI_DEV_FB_USED", device(values={}), first, dataclasses.replace(second, info=other)) == ["1"]


def test_other_vendors_have_no_dcgm_names() -> None:
    amd = device("amd:1234", values=H100, info=info(vendor="amd"))
    assert encode(fleet(amd), {}) == ""
    assert encode(FleetState(0), {}) == ""


def test_labels_are_escaped_and_a_card_without_uuid_has_an_empty_one() -> None:
    odd = device("nvidia:gpu-01:0000:3b:00.0", values={"power_watts": 1.0}, info=info(model='a"b\\c', driver_version=""))
    (line,) = lines("DCGM_FI_DEV_POWER_USAGE", odd)
    assert 'UUID="",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="a\\"b\\\\c",Hostname="gpu-01"} 1.000000' in line


def test_the_rated_counters_are_in_the_catalogue() -> None:
    assert {BY_NAME[name].kind for name in RATED} == {"counter"}


@pytest.mark.parametrize("name", sorted({dcgm.name for dcgm in table().rows if dcgm.default}))
def test_what_dcgm_exporter_prints_by_default_is_printed(name: str) -> None:
    everything = {**H100, "pcie_tx_bytes_per_second": 1.0, "pcie_rx_bytes_per_second": 1.0}
    assert len(lines(name, device(values=everything), trail=TRAIL)) == 1


def test_it_is_what_our_own_dcgm_plugin_reads() -> None:
    page = parse(encode(fleet(device(values=H100)), {(NODE, UID): TRAIL}))
    assert page.skipped == []
    assert {sample.name for sample in page.samples} >= {"DCGM_FI_DEV_GPU_UTIL", "DCGM_EXP_XID_ERRORS_COUNT"}
