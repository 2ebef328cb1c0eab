"""DCGM's numbers become the catalogue's values, each device's own and in its unit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.dcgm.discovery import Target
from collectors.dcgm.exporter import Exporter, Taken
from collectors.dcgm.fetch import Answer
from collectors.dcgm.node import Node
from schemas.catalogue import BY_NAME, BY_NUMBER, CATALOGUE
from schemas.dcgm import table
from schemas.telemetry import v1
from tests.unit.collectors.dcgm.pages import ENV, GPU, H100, MIG, UID, absences, lines, sample, samples, understood


def test_a_whole_page_in_the_catalogues_units() -> None:
    first, second = samples(H100).values()
    assert first.uid == UID
    assert first.power_watts == pytest.approx(612.437)
    assert first.energy_joules == 126272101.025
    assert first.sm_clock_hertz == 1.98e9
    assert first.utilization_ratio == pytest.approx(0.97)
    assert first.memory_used_bytes == 71778 << 20
    assert first.memory_total_bytes == (9216 + 71778 + 565) << 20
    assert first.memory_reserved_bytes == 565 << 20
    assert first.throttled_power_seconds == 5.0
    assert first.throttle_reasons == 1 << v1.ThrottleReason.THROTTLE_REASON_SOFTWARE_POWER_CAP
    assert first.tensor_active_ratio == pytest.approx(0.40122)
    assert first.pcie_tx_bytes_per_second == pytest.approx(301223411)
    assert first.vendor_metrics["dcgm_nvlink_bytes_per_second"] == 24531 * 1_024_000
    assert second.memory_used_bytes == 0
    assert second.HasField("memory_used_bytes")
    assert second.remapped_rows_uncorrectable == 1
    assert second.pcie_replays == 3
    assert absences(second)["memory_temperature_celsius"] == "not_supported"
    assert absences(second)["license_valid"] == "not_supported"


def test_identity_comes_from_the_labels_that_stay() -> None:
    first = samples(H100)[UID]
    assert first.info == v1.DeviceInfo(
        uid=UID,
        vendor="nvidia",
        model="NVIDIA H100 80GB HBM3",
        kind="DEVICE_KIND_ACCELERATOR",
        bdf="0000:1b:00.0",
        driver_version="570.124.06",
    )
    assert understood(H100).reading.driver_version == "570.124.06"


def test_every_field_is_a_value_or_an_absence() -> None:
    for one in [*samples(H100).values(), *samples(MIG).values()]:
        values = {metric.name for metric in CATALOGUE if one.HasField(metric.name)}
        assert values | set(absences(one)) == set(BY_NAME)
        assert not values & set(absences(one))


def test_slow_fields_wait_for_their_turn() -> None:
    (one, _) = understood(H100, slow=False).reading.samples
    assert one.HasField("power_watts")
    assert not one.HasField("memory_total_bytes")
    assert not {name for name in absences(one) if BY_NAME[name].cadence == "slow"}


def test_the_finer_of_two_names_is_taken() -> None:
    one = sample(
        {
            "DCGM_FI_DEV_FB_USED": 100,
            "DCGM_FI_DEV_FB_USED_BYTES": 104857601,
            "DCGM_FI_DEV_GPU_UTIL": 50,
            "DCGM_FI_DEV_GPU_UTIL_RATIO": 0.505,
            "DCGM_FI_DEV_POWER_USAGE": 300,
            "DCGM_FI_DEV_POWER_USAGE_INSTANT": 317.5,
        }
    )
    assert one.memory_used_bytes == 104857601
    assert one.utilization_ratio == pytest.approx(0.505)
    assert one.power_watts == 317.5


def test_new_and_old_names_of_one_field() -> None:
    for name in ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "dcgm_gpu_temp"):
        assert sample({name: 54}).temperature_celsius == 54


def test_link_errors_are_added_only_where_all_parts_are_there() -> None:
    flit, data = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"
    replay, recovery = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"
    whole = sample({flit: 1, data: 2, replay: 4, recovery: 8})
    assert (whole.interconnect_crc_errors, whole.interconnect_errors) == (3, 15)
    part = sample({flit: 1, replay: 4, recovery: 8})
    assert absences(part)["interconnect_crc_errors"] == absences(part)["interconnect_errors"] == "not_supported"


def test_instances_have_their_own_figures_and_their_gpu_the_boards() -> None:
    found = samples(MIG)
    gpu = "nvidia:GPU-0d5a3c1e-7a11-4b0e-9c55-00000000000a"
    assert set(found) == {gpu, f"{gpu}/gi7", f"{gpu}/gi2"}
    part = found[f"{gpu}/gi7"]
    assert part.info.kind == v1.DeviceKind.DEVICE_KIND_PARTITION
    assert part.info.parent_uid == gpu
    assert (part.info.partition.profile, part.info.partition.gpu_instance_id, part.info.partition.gpu_slices) == ("1g.10gb", 7, 1)
    assert part.memory_used_bytes == 8614 << 20
    assert part.graphics_active_ratio == pytest.approx(0.998211)
    assert found[gpu].power_watts == 187.25
    assert found[gpu].sm_clock_hertz == 1.41e9
    assert not found[gpu].HasField("memory_used_bytes")


def test_what_was_there_once_is_an_error_when_it_is_missing() -> None:
    node = Node(ENV.node, "boot")
    understood(lines({"DCGM_FI_DEV_POWER_USAGE": 300, "DCGM_FI_DEV_GPU_TEMP": 50}), node)
    (one,) = understood(lines({"DCGM_FI_DEV_POWER_USAGE": 300}), node).reading.samples
    assert absences(one)["temperature_celsius"] == "error"
    assert absences(one)["fan_ratio"] == "not_supported"


def test_a_falling_energy_counter_begins_a_new_epoch() -> None:
    node = Node(ENV.node, "boot")
    epochs = [
        understood(lines({"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": mj}), node, at_ns=at).reading.driver_epoch
        for at, mj in enumerate((5000, 6000, 10, 20), 1)
    ]
    assert epochs == [0, 0, 3, 3]


NAMES = st.sampled_from([name for row in table().rows for name in (row.name, *row.aliases)])
NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.floats().map(repr),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1e39", "1e308", "4294967295", "18446744073709551615", "9223372036854775794", "-0", "1e400"]),
)
LABELS = st.sampled_from(["", ',GPU_I_ID="7",GPU_I_PROFILE="1g.10gb"', ',GPU_I_ID="x"', ',pod="p"', ',exported_pod="q"', ',nvlink="3"'])
UUIDS = st.sampled_from([GPU, "GPU-b", "", "a b", "MIG-1"])
ROW = st.tuples(NAMES, UUIDS, LABELS, NUMBERS).map(lambda r: f'{r[0]}{{gpu="0",UUID="{r[1]}",pci_bus_id="0:1:0"{r[2]}}} {r[3]}')
PAGES = st.lists(st.one_of(ROW, ROW, ROW, st.text(max_size=30)), max_size=40).map("\n".join)


@settings(max_examples=60)
@given(PAGES, PAGES)
def test_no_page_raises_or_gives_a_value_out_of_range(first: str, second: str) -> None:
    node = Node(ENV.node, "boot")
    for page in (first, second):
        for one in understood(page, node).reading.samples:
            for metric in CATALOGUE:
                if one.HasField(metric.name):
                    assert metric.valid(getattr(one, metric.name)), metric.name
            assert len({number for absence in one.absences for number in absence.field_number}) == sum(
                len(absence.field_number) for absence in one.absences
            )
            assert all(number in BY_NUMBER for absence in one.absences for number in absence.field_number)


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=200) | PAGES.map(str.encode), min_size=1, max_size=3))
def test_no_answer_raises(bodies: list[bytes]) -> None:
    exporter = Exporter(Target("http://x/metrics"), ENV, {})
    for at, body in enumerate(bodies):
        taken = Taken()
        exporter.answered(Answer(body, openmetrics=False, taken_at_ns=at), taken, at, interval_seconds=5, frozen_seconds=300)
        assert taken.readings or taken.rejects
