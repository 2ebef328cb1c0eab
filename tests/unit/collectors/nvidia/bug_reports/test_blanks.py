"""Blanks, sentinels and N/A in other people's reports, each with its input and what is right: peers.md D1, accelerators.md §23.34-35."""

from __future__ import annotations

import pytest

from tests.fakes import nvml
from tests.unit.collectors.nvidia.bug_reports.given import Board, board, fake_nvml_library
from tests.unit.collectors.nvidia.rig import absent

__all__ = ["board", "fake_nvml_library"]


@pytest.mark.parametrize("blank", [0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF], ids=["32 bits", "64 bits"])
def test_d1_d2_a_blank_all_ones_number_is_no_value(board: Board, blank: int) -> None:
    """D1, D2 (NVIDIA/DCGM#83, slurm-job-exporter#30): sentinels shown as numbers, and multiplied. NVML's own are all ones."""
    card = board(change=lambda s: s.set(every__field__83={"value": blank, "type": 3})).card()
    assert absent(card)["energy_joules"] == "error"


def test_d2_one_bad_card_does_not_hide_the_others(board: Board) -> None:
    """D2 (slurm-job-exporter#30): None * 100 on one card of a mixed node made the whole answer fail."""
    rig = board(count=3)
    rig.state.set(_1__utilization_percent=nvml.code(999), _1__field__186=nvml.code(3), _1__power_milliwatts=nvml.code(999))
    rig.read()
    first, second, third = rig.read()
    assert absent(second)["utilization_ratio"] == "error"
    assert absent(second)["power_watts"] == "error"
    assert first.utilization_ratio == third.utilization_ratio == 1.0


@pytest.mark.parametrize("percent", [4294967295, 200_000, 1_000, 101])
def test_d4_a_percentage_above_100_is_out_of_range(board: Board, percent: int) -> None:
    """D4, D70 (NVIDIA/DCGM#199, HAMi#555): GPU_UTIL 4294967295 and spikes of 1,000 to 200,000."""
    rig = board(change=lambda s: s.set(every__utilization_percent=percent))
    assert absent(rig.card())["utilization_ratio"] == "out_of_range"
    assert rig.last.rejects["utilization_ratio", "out_of_range"] == 1


def test_d5_activity_that_stops_is_absent_and_not_carried_on(board: Board) -> None:
    """D5 (NVIDIA/DCGM#202): after an Xid 31 the profiling fields stay blank until a restart."""
    rig = board()
    assert rig.card().HasField("sm_active_ratio")
    rig.state.fail("nvmlGpmMetricsGet", 999)
    assert absent(rig.read(slow=False)[0])["sm_active_ratio"] == "error"
    rig.state.fail("nvmlGpmMetricsGet", 0)
    assert rig.read(slow=False)[0].HasField("sm_active_ratio")


def test_d7_pcie_comes_from_the_byte_counters(board: Board) -> None:
    """D7 (dcgm-exporter#721): PCIe of profiling always 0 on an L40S whose counters show TX 3020371496, RX 3893142392."""

    def counters(state: nvml.State) -> None:
        state.set(every__field__197=3_020_371_496, every__field__198=3_893_142_392, every__gpm__20=0.0, every__gpm__21=0.0)

    card = board("l40s", change=counters).card()
    assert (card.pcie_tx_bytes, card.pcie_rx_bytes) == (3_020_371_496, 3_893_142_392)


def test_d7_gpm_that_says_zero_does_not_stop_a_counter_of_32_bits(board: Board) -> None:
    """D7, where the counter is of 32 bits and profiling wrongly says that nothing moved: what the counter shows is what moved."""
    rig = board(change=lambda s: s.set(every__gpm__20=0.0, every__field__197={"value": 3_020_371_496, "type": 1}))
    before = rig.card().pcie_tx_bytes
    rig.state.set(every__field__197={"value": 3_020_371_496 + 10**9 - 2**32 + 2**32, "type": 1})
    assert rig.read(slow=False)[0].pcie_tx_bytes - before == 10**9


@pytest.mark.parametrize("code", [3, 6, 13, 25, 26])
def test_d8_what_nvidia_smi_shows_as_na_is_not_supported(board: Board, code: int) -> None:
    """D8 (telegraf#7659, netdata#4892): [N/A], deprecated functions and sensors that are not there."""
    card = board(change=lambda s: s.set(every__temperature_celsius=nvml.code(code))).card()
    assert absent(card)["temperature_celsius"] == "not_supported"


@pytest.mark.parametrize(("code", "reason"), [(4, "no_permission"), (999, "error"), (17, "error")])
def test_d8_insufficient_permissions_and_unknown_errors_say_so(board: Board, code: int, reason: str) -> None:
    """D8: `Insufficient Permissions` and `[Unknown Error]`."""
    card = board(change=lambda s: s.set(every__utilization_percent=nvml.code(code))).card()
    assert absent(card)["utilization_ratio"] == reason


def test_d10_words_of_a_later_release_are_skipped(board: Board) -> None:
    """D10 (nvidia_gpu_exporter#389, categraf#1056): a new unit or field stops the exporter. Unknown bits and enum values do not."""
    rig = board(change=lambda s: s.set(every__clock_reasons=0x8000_0004, every__architecture=99, every__virtualization_mode=7))
    card = rig.card()
    assert card.throttle_reasons == 1 << 2
    assert (card.info.architecture, card.info.virtualization) == ("", "")


def test_d13_a_blank_row_remap_before_ampere_is_no_failure(board: Board) -> None:
    """D13 (EKS NMA #246): a T4 has no row remapping."""
    said = absent(board("t4").card())
    assert {said[f"remapped_rows_{name}"] for name in ("correctable", "uncorrectable", "pending", "failed")} == {"not_supported"}


def test_d13_a_board_before_ampere_retires_pages(board: Board) -> None:
    """D13, the other half: its retired pages are counted, by calls where the fields are not there."""

    def retired(state: nvml.State) -> None:
        pages = {"single_bit": [{"address": 4096, "at": 1}], "double_bit": [{"address": 1, "at": 1}, {"address": 2, "at": 2}], "pending": 1}
        state.every.set(retired_pages=pages)
        for number in (29, 30, 31):
            state.every.field(number, nvml.code(3))

    card = board("t4", change=retired).card()
    assert (card.retired_pages_single_bit, card.retired_pages_double_bit, card.retired_pages_pending) == (1, 2, True)


def test_s34_s35_na_of_vgpu_and_mig_is_absent(board: Board) -> None:
    """§23.34, §23.35 (HSF/prmon#318, microsoft/pai#949): `[N/A]` and missing nodes of guests with a vGPU."""

    def guest(state: nvml.State) -> None:
        state.every.set(
            virtualization_mode=2,
            fan_percent=None,
            temperature_celsius=None,
            power_milliwatts=None,
            energy_millijoules=None,
        )
        state.set(every__field__185=nvml.code(3), every__field__186=nvml.code(3), every__field__83=nvml.code(3))

    card = board(change=guest).card()
    said = absent(card)
    assert {said[name] for name in ("temperature_celsius", "power_watts", "energy_joules", "fan_ratio")} == {"not_supported"}
    assert card.info.virtualization == "vgpu"
    assert card.HasField("memory_used_bytes")
