"""Reports about counters, units, unified memory and health, each with its input and what is right: peers.md D5 and D6."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.nvidia.slow_fields import fabric_unhealthy
from collectors.nvidia.unified import unified_memory
from schemas.identity import normal_bdf
from schemas.values import Absent
from tests.fakes import nvml
from tests.unit.collectors.nvidia.bug_reports.given import Board, board, fake_nvml_library
from tests.unit.collectors.nvidia.rig import absent

__all__ = ["board", "fake_nvml_library"]


def test_d60_violation_times_are_nanoseconds(board: Board) -> None:
    """D60 (dcgm-exporter PR#589): taken for microseconds."""

    def times(state: nvml.State) -> None:
        state.set(every__field__74=2_500_000_000, every__field__75=nvml.code(3), every__violation_thermal_nanoseconds=1_500_000_000)

    card = board(change=times).card()
    assert (card.throttled_power_seconds, card.throttled_thermal_seconds) == (2.5, 1.5)


def test_d61_the_window_of_pcie_is_in_kilobytes_and_on_the_slow_cadence(board: Board) -> None:
    """D61 (nvidia-settings#114): KB/s, over a window that blocks; only where no counter is, and once a minute."""
    rig = board("t4", change=lambda s: s.set(every__pcie_tx_kilobytes_per_second=352, every__pcie_rx_kilobytes_per_second=329))
    card = rig.card()
    assert (card.pcie_tx_bytes_per_second, card.pcie_rx_bytes_per_second) == (352_000, 329_000)
    rig.state.fail("nvmlDeviceGetPcieThroughput", 999)
    assert "pcie_tx_bytes_per_second" not in absent(rig.read(slow=False)[0])


def test_d64_d65_energy_is_what_the_driver_counts(board: Board) -> None:
    """D64, D65 (amdsmi#38, pyJoules#21): a frozen or backward counter is passed on; the epoch tells a reset from a fault."""
    rig = board()
    before = rig.card().energy_joules
    rig.state.set(every__field__83=1_000)
    after = rig.read(slow=False)[0]
    assert before == pytest.approx(918_273_645.123)
    assert after.energy_joules == 1.0


@pytest.mark.parametrize("profile", ["h100", "h100-mig"])
def test_d70_more_memory_than_there_is_is_no_figure(board: Board, profile: str) -> None:
    """D70 (gpustack#4703): 47.98 of 23.99 GiB; of a card and of an instance."""
    used, total = 51_518_132_715, 25_759_066_357

    def odd(state: nvml.State) -> None:
        state.set(every__memory_used_bytes=used, every__memory_total_bytes=total)
        for instance in state.data["devices"][0].get("mig", {}).get("instances", []):
            instance.update(memory_used_bytes=used, memory_total_bytes=total)

    rig = board(profile, change=odd)
    rig.read()
    samples = rig.read()
    rejects = rig.last.rejects["memory_used_bytes", "out_of_range"]
    assert {(absent(sample)["memory_used_bytes"], sample.memory_total_bytes) for sample in samples} == {("out_of_range", total)}
    assert rejects == len(samples) == (5 if profile == "h100-mig" else 1)
    rig.state.set(every__memory_used_bytes=total)
    assert rig.read(slow=False)[0].memory_used_bytes == total


MEMINFO = "MemTotal:       127600748 kB\nMemFree:          800000 kB\nMemAvailable:   120852389 kB\nSwapTotal:      14665620 kB\n"


def test_d70_nothing_is_divided_by_a_memory_of_zero(board: Board, tmp_path: Path) -> None:
    """D70, D71 (gpustack c8284ab2): a total of 0 is a chip without memory of its own."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(MEMINFO)
    card = board("gb10", change=lambda s: s.set(every__memory_total_bytes=0, every__memory_used_bytes=0), meminfo=meminfo).card()
    assert card.memory_total_bytes == 127_600_748 * 1024
    assert card.info.memory_kind == "unified"


def test_d71_unified_memory_is_the_hosts_without_swap_and_marked(board: Board, tmp_path: Path) -> None:
    """D71 (gpud#1084, nvtop#411, gpustack): MemTotal 127600748 kB; with swap it became 138932 MiB."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(MEMINFO)
    rig = board("gb10", meminfo=meminfo)
    for slow in (True, False):
        card = rig.card(slow=slow)
        assert card.memory_used_bytes == (127_600_748 - 120_852_389) * 1024
    assert rig.card().memory_total_bytes == 130_663_165_952 < 138_932 << 20
    assert absent(rig.card())["memory_reserved_bytes"] == "not_supported"
    assert card.info.memory_kind == "unified"


def test_d71_used_is_what_is_not_available_so_that_it_adds_up() -> None:
    """D71 (gpud#1084): total 128501256192, used 6910320640 and free 7976902656 do not add up: caches are neither."""
    total, free, available = 128_501_256_192, 7_976_902_656, 128_501_256_192 - 6_910_320_640
    text = f"MemTotal: {total // 1024} kB\nMemFree: {free // 1024} kB\nMemAvailable: {available // 1024} kB\n"
    assert unified_memory(text) == (total, total - available) == (128_501_256_192, 6_910_320_640)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MemTotal: 100 kB\n",
        "MemTotal: 100 kB\nMemAvailable: 200 kB\n",
        "MemTotal: x kB\nMemAvailable: 5 kB\n",
        "MemTotal:\nMemAvailable:\n",
    ],
    ids=["empty", "old kernel", "more free than there is", "no number", "nothing"],
)
def test_d71_a_host_that_does_not_tell_gives_no_guess(text: str) -> None:
    """D71: used memory is not made up from what is missing."""
    assert unified_memory(text) is None


def test_d71_a_missing_meminfo_is_an_error_of_two_fields(board: Board, tmp_path: Path) -> None:
    """D71: the rest of the card is read all the same."""
    card = board("gb10", meminfo=tmp_path / "none").card()
    assert (absent(card)["memory_total_bytes"], absent(card)["memory_used_bytes"]) == ("error", "error")
    assert card.HasField("power_watts")


def test_d82_a_mask_that_tells_nothing_is_not_unhealthy() -> None:
    """D82 (aicr#2641): idle GB300 called unhealthy for 13 days because a word said "not supported"."""
    assert fabric_unhealthy(3, 0) == Absent("not_supported")
    assert fabric_unhealthy(3, 0b10) == 0


def test_d83_a_board_without_nvlink_has_no_links_down(board: Board) -> None:
    """D83 (NVSentinel#1481): NVLINK_DOWN twelve times on an A100 PCIe."""
    rig = board("a100", change=lambda s: s.every.set(nvlink={"count": nvml.code(3)}) or s.set(every__field__91=nvml.code(3)))
    card = rig.card()
    assert absent(card)["interconnect_links_active"] == "not_supported"
    assert len(card.links) == 0


def test_d83_one_link_that_is_not_supported_leaves_the_others(board: Board) -> None:
    """D83 (gpud#1227): link 12 of an A100 not supported, so the whole card was."""
    rig = board(change=lambda s: s.device(0).link(12, active=nvml.code(3)))
    card = rig.card()
    assert card.interconnect_links_active == 17
    assert [link.HasField("active") for link in card.links].count(False) == 1


def test_d83_link_12_of_an_a100_is_not_there(board: Board) -> None:
    """D83 (gpud#1227): an A100 has links 0 to 11; link 12 answers NOT_SUPPORTED, and the whole card was called unsupported."""
    card = board("a100", change=lambda s: s.device(0).link(12, active=nvml.code(3))).card()
    assert card.interconnect_links_active == 12
    assert [link.index for link in card.links if link.active] == list(range(12))
    assert card.HasField("power_watts")


def test_d83_a_pcie_board_has_no_fabric_to_be_unhealthy_in(board: Board) -> None:
    """D83 (gpud#1140, #1147): fabric "Not Supported" on an H100 PCIe."""
    rig = board(change=lambda s: s.every.set(fabric={"state": 0, "status": 3, "health_mask": 0}))
    said = absent(rig.card())
    assert (said["fabric_state"], said["fabric_unhealthy"]) == ("not_supported", "not_supported")


def test_d87_one_card_has_one_address_whatever_the_driver_writes(board: Board) -> None:
    """D87 (gpud#1003): 0000:05:00 in the kernel's log and 00000000:05:00.0 of NVML are one card."""
    card = board(change=lambda s: s.set(_0__bus_id="00000000:05:00.0")).card()
    assert card.info.bdf == normal_bdf("0000:05:00") == "0000:05:00.0"


@pytest.mark.parametrize("margin", [0, -5])
def test_d85_a_margin_of_zero_or_less_is_a_value(board: Board, margin: int) -> None:
    """D85 (gpud#1208): margins of 0 and -5 °C; what they mean follows from the card's own limits, which are told beside them."""
    card = board(change=lambda s: s.set(every__margin_celsius=margin, every__temperature_celsius=85 - margin)).card()
    assert card.temperature_margin_celsius == margin
    assert card.temperature_slowdown_celsius == 87
