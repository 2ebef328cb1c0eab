"""Bug reports about DCGM and its exporter (reference/peers.md, section D), each with its exact input and the right value."""

from __future__ import annotations

import pytest

from collectors.dcgm.blank import reading
from collectors.dcgm.discovery import Target
from collectors.dcgm.exporter import Exporter, Taken
from collectors.dcgm.fetch import Answer
from collectors.dcgm.node import Node
from collectors.dcgm.page import sort
from schemas import exposition
from schemas.dcgm import table
from schemas.telemetry import v1
from schemas.values import Absent
from tests.unit.collectors.dcgm.pages import ENV, GPU, H100, UID, absences, lines, sample, samples, understood


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (2147483632, "error"),
        (2147483633, "not_supported"),
        (2147483634, "not_supported"),
        (2147483635, "no_permission"),
        (9223372036854775792, "error"),
        (9223372036854775793, "not_supported"),
        (9223372036854775794, "not_supported"),
        (9223372036854775795, "no_permission"),
        (140737488355328.0, "error"),
        (140737488355329.0, "not_supported"),
        (140737488355330.0, "not_supported"),
        (140737488355331.0, "no_permission"),
    ],
)
def test_d1_every_blank_value_of_dcgm_is_absent_with_its_reason(value: float, why: str) -> None:
    """D 1, NVIDIA/DCGM#83."""
    assert reading(value) == Absent(why)  # type: ignore[arg-type]  # a str of the table above
    one = sample({"DCGM_FI_DEV_GPU_TEMP": value, "DCGM_FI_DEV_POWER_USAGE": 70})
    assert absences(one)["temperature_celsius"] == why
    assert one.power_watts == 70


def test_d1_blank_strings_are_no_identity() -> None:
    """D 1, NVIDIA/DCGM#83, the string family: in labels they name nothing."""
    labels = 'UUID="GPU-a",modelName="<<<NULL>>>",DCGM_FI_DEV_SERIAL="<<<NOT_SUPPORTED>>>",DCGM_FI_DRIVER_VERSION="<<<NOT_PERM>>>"'
    page = f"DCGM_FI_DEV_GPU_TEMP{{{labels}}} 5\n"
    (one,) = understood(page + 'DCGM_FI_DEV_GPU_TEMP{UUID="<<<NOT_FOUND>>>"} 6\n').reading.samples
    assert (one.info.model, one.info.serial, one.info.driver_version) == ("NVIDIA GPU", "", "")


@pytest.mark.parametrize(
    "value", ["140737488355328.0", "9223372036854775792", "14073748835532800", "1.40737488355328e+16", "922337203685477579200"]
)
def test_d2_blanks_that_were_multiplied_are_blanks_and_one_bad_device_kills_no_other(value: str) -> None:
    """D 2, slurm-job-exporter#30 and #53."""
    bad, good = understood(lines({"DCGM_FI_DEV_GPU_UTIL": value}) + lines({"DCGM_FI_DEV_GPU_UTIL": 7}, uuid="GPU-p100")).reading.samples
    assert absences(bad)["utilization_ratio"] == "error"
    assert good.utilization_ratio == pytest.approx(0.07)


@pytest.mark.parametrize("value", [4294967295, 1000, 200_000, 101])
def test_d4_a_utilization_above_100_is_rejected_and_counted(value: int) -> None:
    """D 4, NVIDIA/DCGM#199."""
    found = understood(lines({"DCGM_FI_DEV_GPU_UTIL": value}))
    assert absences(found.reading.samples[0])["utilization_ratio"] == "out_of_range"
    assert found.rejects["utilization_ratio", "out_of_range"] == 1


def test_d5_profiling_that_goes_blank_is_an_event_and_no_old_value() -> None:
    """D 5, NVIDIA/DCGM#202: after an Xid 31 the profiling fields stay blank."""
    node = Node(ENV.node, "boot")
    well = {"DCGM_FI_DEV_XID_ERRORS": 0, "DCGM_FI_PROF_SM_ACTIVE": 0.5, "DCGM_FI_PROF_DRAM_ACTIVE": 0.25}
    understood(lines(well), node)
    blank = understood(lines({"DCGM_FI_DEV_XID_ERRORS": 31, "DCGM_FI_PROF_SM_ACTIVE": 140737488355328.0}), node)
    assert absences(blank.reading.samples[0])["sm_active_ratio"] == absences(blank.reading.samples[0])["dram_active_ratio"] == "error"
    kinds = [v1.DeviceEventKind.Name(event.kind) for event in blank.events]
    assert kinds == ["DEVICE_EVENT_KIND_XID", "DEVICE_EVENT_KIND_VENDOR_LOG"]
    assert "dram_active_ratio, sm_active_ratio" in blank.events[1].text
    again = understood(lines({"DCGM_FI_DEV_XID_ERRORS": 31, "DCGM_FI_PROF_SM_ACTIVE": 140737488355328.0}), node)
    assert again.events == []
    back = understood(lines(well | {"DCGM_FI_DEV_XID_ERRORS": 31}), node)
    assert [event.severity for event in back.events] == [v1.Severity.SEVERITY_INFO]


def test_d7_a_pcie_rate_that_is_always_0_is_not_believed() -> None:
    """D 7, dcgm-exporter#721: L40S, PROF_PCIE_* 0 while the card's counters moved (TX 3020371496, RX 3893142392)."""
    stuck = {"DCGM_FI_PROF_PCIE_TX_BYTES": 0, "DCGM_FI_PROF_PCIE_RX_BYTES": 0, "DCGM_FI_DEV_GPU_UTIL": 80}
    assert absences(sample(stuck))["pcie_tx_bytes_per_second"] == absences(sample(stuck))["pcie_rx_bytes_per_second"] == "error"
    other = sample(stuck | {"DCGM_FI_DEV_PCIE_TX_THROUGHPUT": 3020371, "DCGM_FI_DEV_PCIE_RX_THROUGHPUT": 3893142})
    assert (other.pcie_tx_bytes_per_second, other.pcie_rx_bytes_per_second) == pytest.approx((3020371e3, 3893142e3))
    idle = sample(stuck | {"DCGM_FI_DEV_GPU_UTIL": 0})
    assert idle.HasField("pcie_tx_bytes_per_second")
    assert idle.pcie_tx_bytes_per_second == 0


def test_d8_text_in_place_of_a_number_is_skipped_alone() -> None:
    """D 8, telegraf#7659 and others, as far as an exposition can hold it: a line without a number is counted, and tells nothing."""
    for word in (
        *("N/A", "[N/A]", "ERR!", "Unknown", "[Not Supported]", "[Unknown Error]", "Insufficient Permissions"),
        "Requested functionality has been deprecated",
    ):
        page = lines({"DCGM_FI_DEV_FAN_SPEED": word, "DCGM_FI_DEV_GPU_TEMP": 41})
        assert sum(exposition.parse(page).counts.values()) == 1, word
        (one,) = understood(page).reading.samples
        assert one.temperature_celsius == 41
        assert absences(one)["fan_ratio"] == "not_supported"


def test_d8_a_word_where_a_number_was_is_an_error() -> None:
    """D 8 and 49 (nvidia_gpu_exporter#393): ERR! of a fan that had a value before is no card without a fan."""
    node = Node(ENV.node, "boot")
    understood(lines({"DCGM_FI_DEV_FAN_SPEED": 35}), node)
    (one,) = understood(lines({"DCGM_FI_DEV_FAN_SPEED": "ERR!", "DCGM_FI_DEV_GPU_TEMP": 41}), node).reading.samples
    assert absences(one)["fan_ratio"] == "error"


def test_d10_fields_that_nobody_knows_are_skipped_and_counted() -> None:
    """D 10, nvidia_gpu_exporter#389 and categraf#1056."""
    page = sort(exposition.parse(lines({"DCGM_FI_DEV_HETEROGENEOUS_MULTI_VGPU": 1, "DCGM_FI_DEV_GPU_TEMP": 41})))
    assert page.left_out == {"unknown_field": 1}
    assert len(page.devices) == 1


@pytest.mark.parametrize(
    "odd",
    [
        'nvidia_smi_clocks_event_reasons_counters.sw_power_cap_[us]{gpu="0"} 5',
        'nvidia_smi_power_ramp_W/s{gpu="0"} 5',
        'vgpu_driver_capability.heterogenous_multivGPU{gpu="0"} 1',
        "# TYPE DCGM_FI_DEV_GPU_TEMP us",
        "# UNIT DCGM_FI_DEV_GPU_TEMP W/s",
    ],
)
def test_d10_a_name_or_unit_of_a_newer_driver_is_left_out_alone(odd: str) -> None:
    """D 10, nvidia_gpu_exporter#389 ([us], W/s: panic over a metric's name), categraf#1056 (the plugin never starts)."""
    (one,) = understood(odd + "\n" + lines({"DCGM_FI_DEV_GPU_TEMP": 41})).reading.samples
    assert one.temperature_celsius == 41


def test_d11_lines_with_empty_labels_make_no_device() -> None:
    """D 11, ROCm/device-metrics-exporter#353, the same mistake in DCGM's words: no uuid, no address, all 0."""
    found = sort(exposition.parse('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="",pci_bus_id="",modelName=""} 0\n'))
    assert found.devices == {}
    assert found.left_out == {"no_identity": 1}


def test_d13_a_blank_failure_flag_is_no_failure() -> None:
    """D 13, EKS node monitoring agent #246: pre-Ampere boards have no row remapping."""
    one = sample({"DCGM_FI_DEV_ROW_REMAP_FAILURE": 2147483634, "DCGM_FI_DEV_ROW_REMAP_PENDING": 9223372036854775794})
    assert absences(one)["remapped_rows_failed"] == absences(one)["remapped_rows_pending"] == "not_supported"


def test_d14_each_instance_repeats_its_gpus_energy_which_is_counted_once() -> None:
    """D 14, dcgm-exporter#317: 126272101025 mJ on each MIG instance."""
    page = "".join(
        f'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="0",UUID="{GPU}",GPU_I_PROFILE="1g.6gb",GPU_I_ID="{gi}"}} 126272101025\n'
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="{GPU}",GPU_I_PROFILE="1g.6gb",GPU_I_ID="{gi}"}} 28.5\n'
        for gi in (3, 4, 5, 6)
    )
    found = samples(page)
    assert sum(one.energy_joules for one in found.values()) == 126272101.025
    assert sum(one.power_watts for one in found.values()) == 28.5
    assert found[UID].energy_joules == 126272101.025
    assert absences(found[f"{UID}/gi3"])["energy_joules"] == "not_supported"


def test_d16_the_total_needs_all_its_parts() -> None:
    """D 16, dcgm-exporter#380: FB_FREE is missing under MIG on H100."""
    used = {"DCGM_FI_DEV_FB_USED": 1024, "DCGM_FI_DEV_FB_RESERVED": 512}
    assert absences(sample(used))["memory_total_bytes"] == "not_supported"
    assert sample(used).memory_used_bytes == 1 << 30
    assert sample(used | {"DCGM_FI_DEV_FB_FREE": 79000}).memory_total_bytes == 80536 << 20


def test_d16_a_gpu_with_neither_used_nor_free_memory_has_not_been_read() -> None:
    """D 16, dcgm-exporter#103 and #71: DCGM 2.4.5 lost FB_*, all 0."""
    one = sample({"DCGM_FI_DEV_FB_USED": 0, "DCGM_FI_DEV_FB_FREE": 0})
    assert absences(one)["memory_used_bytes"] == "error"
    assert absences(one)["memory_total_bytes"] == "not_supported"


@pytest.mark.parametrize(("raw", "value"), [("1.13", 1.0), ("0.57", 0.57)])
def test_d17_activity_of_an_instance_is_bounded_and_its_raw_value_kept(raw: str, value: float) -> None:
    """D 17, NVIDIA/DCGM#152 (SM_ACTIVE above 100 % on MIG), gpu-operator#2022 (4g.40gb never full: DCGM's figure is left as it is)."""
    found = samples(lines({"DCGM_FI_PROF_SM_ACTIVE": raw}, more=',GPU_I_PROFILE="4g.40gb",GPU_I_ID="1"'))[f"{UID}/gi1"]
    assert found.sm_active_ratio == pytest.approx(value)
    assert dict(found.vendor_metrics) == ({"dcgm_sm_active_ratio_before_limit": 1.13} if value == 1.0 else {})
    assert found.info.partition.gpu_slices == 4


def test_d17_nonsense_stays_nonsense() -> None:
    """D 17: beyond rounding on a whole GPU, beyond twice on an instance."""
    assert absences(sample({"DCGM_FI_PROF_SM_ACTIVE": 1.13}))["sm_active_ratio"] == "out_of_range"
    part = samples(lines({"DCGM_FI_PROF_SM_ACTIVE": 2.5}, more=',GPU_I_PROFILE="1g.10gb",GPU_I_ID="1"'))[f"{UID}/gi1"]
    assert absences(part)["sm_active_ratio"] == "out_of_range"


def test_d18_utilization_of_a_gpu_that_is_cut_is_absent_and_not_0() -> None:
    """The exporter's 0 for a GPU in MIG mode (accelerators.md §4.1) is no measurement."""
    found = samples(lines({"DCGM_FI_DEV_GPU_UTIL": 0, "DCGM_FI_DEV_GPU_TEMP": 50}, more=',GPU_I_PROFILE="1g.10gb",GPU_I_ID="1"'))
    assert absences(found[UID])["utilization_ratio"] == absences(found[f"{UID}/gi1"])["utilization_ratio"] == "not_supported"
    assert found[UID].temperature_celsius == 50


def test_d19_shares_of_one_gpu_are_one_gpu() -> None:
    """D 19 and 31, dcgm-exporter#307, #201, HAMi#112: a line for each virtual GPU."""
    page = "".join(lines({"DCGM_FI_DEV_FB_USED": 15866}, more=f',vgpu="{n}",pod="pod-{n}"') for n in range(4))
    found = understood(page)
    assert [one.memory_used_bytes for one in found.reading.samples] == [15866 << 20]


def test_d20_values_of_pods_that_differ_are_not_the_devices() -> None:
    """D 20, dcgm-exporter#432 and its per-process metrics: which of two is the device's cannot be told; a line without a pod can."""
    shares = lines({"DCGM_FI_DEV_FB_USED": 100}, more=',pod="a"') + lines({"DCGM_FI_DEV_FB_USED": 200}, more=',pod="b"')
    (one,) = understood(shares).reading.samples
    assert absences(one)["memory_used_bytes"] == "error"
    (one,) = understood(shares + lines({"DCGM_FI_DEV_FB_USED": 310}, more=',pod=""')).reading.samples
    assert one.memory_used_bytes == 310 << 20


def test_d31_no_pod_labels_at_all_change_nothing() -> None:
    """D 31, dcgm-exporter#138, #188, #150, #58."""
    bare = H100.replace(',container="train",namespace="ml",pod="job-7"', "").replace(',container="",namespace="",pod=""', "")
    assert samples(bare) == samples(H100)


def test_d33_pods_that_come_and_go_make_no_new_device() -> None:
    """D 33, dcgm-exporter#340: exported_pod changes with each sample."""
    node = Node(ENV.node, "boot")
    seen = set()
    for n in range(20):
        for one in understood(
            lines({"DCGM_FI_DEV_GPU_UTIL": n}, more=f',exported_pod="job-{n}",exported_namespace="ml"'), node
        ).reading.samples:
            seen.add((one.uid, one.info.SerializeToString(deterministic=True)))
    assert len(seen) == 1


def test_d46_the_number_that_says_no_instance_is_no_instance() -> None:
    """D 46: GpuInstanceId 4294967295."""
    assert set(samples(lines({"DCGM_FI_DEV_GPU_TEMP": 5}, more=',GPU_I_ID="4294967295"'))) == {UID}


def test_d51_a_page_that_stands_still_is_stale_whatever_its_health_says() -> None:
    """D 51, gpu-monitoring-tools#188: nv-hostengine was started again, the exporter goes on with old numbers."""
    exporter = Exporter(Target("http://x/metrics", own=True), ENV, {})

    def read(at: float, page: str) -> Taken:
        taken = Taken()
        exporter.answered(Answer(page.encode(), openmetrics=False, taken_at_ns=int(at)), taken, at, interval_seconds=5, frozen_seconds=300)
        return taken

    assert read(1, H100).readings[0].samples[0].HasField("power_watts")
    assert read(300, H100).readings[0].samples[0].HasField("power_watts")
    stale = read(301, H100)
    assert [event.kind for event in stale.events] == [v1.DeviceEventKind.DEVICE_EVENT_KIND_SOURCE_UNAVAILABLE]
    assert set(absences(stale.readings[0].samples[0]).values()) == {"stale"}
    assert read(310, H100).events == []
    moved = read(320, H100.replace("126272101025", "126272109999"))
    assert [event.kind for event in moved.events] == [v1.DeviceEventKind.DEVICE_EVENT_KIND_RECOVERED]
    assert moved.readings[0].samples[0].HasField("power_watts")


def test_d60_violation_times_are_nanoseconds_whatever_the_help_says() -> None:
    """D 60, dcgm-exporter PR#589."""
    page = "# HELP DCGM_FI_DEV_POWER_VIOLATION Throttling duration (in us).\n" + lines({"DCGM_FI_DEV_POWER_VIOLATION": 5_000_000_000})
    (one,) = understood(page).reading.samples
    assert one.throttled_power_seconds == 5.0
    assert sample({"DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL": 5.25}).throttled_power_seconds == 5.25


@pytest.mark.parametrize(
    ("name", "raw", "metric", "value"),
    [
        ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", 1500, "pcie_tx_bytes_per_second", 1.5e6),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", 1500, "pcie_tx_bytes_per_second", 1500),
        ("DCGM_FI_DEV_FB_USED", 1, "memory_used_bytes", 1 << 20),
        ("DCGM_FI_DEV_BAR1_USED", 3, "bar1_used_bytes", 3 << 20),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1500, "energy_joules", 1.5),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1500, "energy_joules", 1500),
        ("DCGM_FI_DEV_SM_CLOCK", 1980, "sm_clock_hertz", 1.98e9),
        ("DCGM_FI_DEV_FAN_SPEED", 35, "fan_ratio", 0.35),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 0x80 | 0x1000, "throttle_reasons", 1 << 7),
        ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", 3, "fabric_state", 3),
        ("DCGM_FI_DEV_RETIRED_PENDING", 4, "retired_pages_pending", True),
    ],
)
def test_d61_each_unit(name: str, raw: int, metric: str, value: float) -> None:
    """D 60 and 61: units and enumerations held by examples."""
    assert getattr(sample({name: raw}), metric) == pytest.approx(value)


@pytest.mark.parametrize("raw", [-5, -1, "-0.001"])
def test_d65_energy_is_never_negative(raw: object) -> None:
    """D 65, pyJoules#21."""
    assert absences(sample({"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": raw}))["energy_joules"] == "out_of_range"


def test_d70_more_memory_than_there_is_is_no_figure() -> None:
    """D 70, gpustack#4703: 47.98 of 23.99 GiB."""
    one = sample({"DCGM_FI_DEV_FB_USED": 49_132, "DCGM_FI_DEV_FB_TOTAL": 24_566})
    assert absences(one)["memory_used_bytes"] == "out_of_range"
    assert one.memory_total_bytes == 24_566 << 20


def test_d67_hostname_and_Hostname_name_the_same_node() -> None:
    """D 67, dcgm-exporter#655."""
    hosts = {
        key.host
        for spelling in ("Hostname", "hostname")
        for key in sort(exposition.parse(f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-a",{spelling}="gpu-node-1"}} 5\n')).devices
    }
    assert hosts == {"gpu-node-1"}


def test_d73_a_sticky_gauge_is_an_event_once() -> None:
    """D 73, dcgm-exporter#500, #190, #502: the last Xid stays for ever."""
    node = Node(ENV.node, "boot")
    codes = [
        [(v1.DeviceEventKind.Name(event.kind), event.code) for event in understood(lines({"DCGM_FI_DEV_XID_ERRORS": code}), node).events]
        for code in (31, 31, 31, 79, 79, 2147483632, 79, 0, 79)
    ]
    assert codes == [
        [("DEVICE_EVENT_KIND_VENDOR_LOG", 31)],
        [],
        [],
        [("DEVICE_EVENT_KIND_XID", 79)],
        [],
        [],
        [],
        [],
        [("DEVICE_EVENT_KIND_XID", 79)],
    ]


def test_d73_the_same_xid_twice_is_seen_where_the_exporter_counts() -> None:
    """D 73, DCGM#277, #112: in the gauge a second 31 is invisible, in the windowed count it is not."""
    node = Node(ENV.node, "boot")

    def events(count: int) -> list[tuple[int, int]]:
        page = lines({"DCGM_FI_DEV_XID_ERRORS": 31}) + lines(
            {"DCGM_EXP_XID_ERRORS_COUNT": count}, more=',window_size_in_ms="300000",xid="31"'
        )
        return [
            (event.code, event.count) for event in understood(page, node).events if event.kind == v1.DeviceEventKind.DEVICE_EVENT_KIND_XID
        ]

    understood(lines({"DCGM_FI_DEV_XID_ERRORS": 0}) + lines({"DCGM_EXP_XID_ERRORS_COUNT": 0}, more=',window_size_in_ms="300000"'), node)
    assert [events(count) for count in (1, 1, 3, 2, 0, 1)] == [[(31, 1)], [], [(31, 2)], [], [], [(31, 1)]]


def test_d83_a_fabric_that_dcgm_cannot_tell_is_not_a_failed_one() -> None:
    """D 82 and 83: unrecognised (5) and NVML too old (6) are not failures."""
    assert absences(sample({"DCGM_FI_DEV_FABRIC_MANAGER_STATUS": 6}))["fabric_state"] == "error"
    assert sample({"DCGM_FI_DEV_FABRIC_MANAGER_STATUS": 0}).HasField("fabric_state")


def test_d87_the_address_is_normal() -> None:
    """D 87, gpud#1003: 00000000:1B:00.0 is 0000:1b:00.0."""
    assert samples(H100)[UID].info.bdf == "0000:1b:00.0"


def test_blank_values_of_every_row_are_absent() -> None:
    """D 1 for each field of the table."""
    one = sample({row.name: 9223372036854775794 for row in table().rows})
    assert not [name for name in absences(one) if one.HasField(name)]
    assert set(absences(one).values()) == {"not_supported"}
    assert not one.vendor_metrics
