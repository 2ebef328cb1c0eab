"""Reports about MIG, sharing and memory that is nobody's, each with its input and what is right: peers.md D2, D39, D46."""

from __future__ import annotations

import pytest

from schemas.catalogue import CATALOGUE
from tests.fakes import nvml
from tests.unit.collectors.nvidia.bug_reports.given import Board, board, fake_nvml_library
from tests.unit.collectors.nvidia.rig import absent

__all__ = ["board", "fake_nvml_library"]


def test_d14_no_instance_repeats_its_cards_energy(board: Board) -> None:
    """D14 (dcgm-exporter#317, slurm-job-exporter#55): each instance reports the parent's 126272101025 mJ."""

    def told(state: nvml.State) -> None:
        state.set(every__field__83=126_272_101_025)
        state.data["devices"][0]["mig"]["instances_answer_for_parent"] = 1

    rig = board("h100-mig", change=told)
    rig.read()
    card, *parts = rig.read()
    assert card.energy_joules == pytest.approx(126_272_101.025)
    assert len(parts) == 4
    for part in parts:
        assert {absent(part)[metric.name] for metric in CATALOGUE if metric.board_level} == {"not_supported"}


def test_d16_an_instances_memory_is_its_own(board: Board) -> None:
    """D16 (dcgm-exporter#380, #103): framebuffer figures missing or 0 under MIG."""
    rig = board("h100-mig")
    rig.read()
    parts = rig.read()[1:]
    assert [part.memory_total_bytes >> 20 for part in parts] == [40_448, 20_096, 9_984, 9_984]


def test_d17_activity_of_an_instance_above_one_is_bounded_and_kept_raw(board: Board) -> None:
    """D17 (NVIDIA/DCGM#152, gpu-operator#2022): SM activity above 100 % for a MIG instance."""

    def busy(state: nvml.State) -> None:
        gpm = state.data["devices"][0]["mig"]["instances"][0]["gpm"]
        gpm.update({"2": 114.3, "5": 350.0})

    rig = board("h100-mig", change=busy)
    rig.read()
    part = rig.read()[1]
    assert part.sm_active_ratio == 1.0
    assert part.vendor_metrics["nvidia.raw.sm_active_ratio"] == pytest.approx(1.143)
    assert absent(part)["tensor_active_ratio"] == "out_of_range"


def test_d36_nothing_is_estimated_for_instances(board: Board) -> None:
    """D36 (Kepler#1198): the idle power of a card and the utilisation of its instances are not made up."""
    rig = board("a100-mig")
    rig.read()
    for part in rig.read()[1:]:
        said = absent(part)
        assert (said["power_watts"], said["utilization_ratio"], said["sm_active_ratio"]) == ("not_supported",) * 3


def test_d39_used_memory_leaves_out_what_is_reserved(board: Board) -> None:
    """D39 (nvitop#13, gpustat#116): since R510 `used` of the first version includes the reserved memory; the second tells it apart."""
    card = board().card()
    assert card.memory_used_bytes == 20_780_679_168
    assert card.memory_reserved_bytes == 502_267_904


def test_d39_308_mb_without_a_process_are_the_drivers(board: Board) -> None:
    """D39 (nvitop#13, gpustat#116): 308 MB in use with no process, driver 515.76: the first version's `used`; nothing is used."""

    def idle(state: nvml.State) -> None:
        state.set(driver_version="515.76", every__memory_used_bytes=0, every__memory_reserved_bytes=308 << 20)

    card = board(change=idle).card()
    assert (card.memory_used_bytes, card.memory_reserved_bytes) == (0, 308 << 20)

    def idle_before_510(state: nvml.State) -> None:
        idle(state)
        state.fail("nvmlDeviceGetMemoryInfo_v2", 13)

    old = board(change=idle_before_510).card()
    assert old.memory_used_bytes == 308 << 20, "a driver that cannot tell them apart says both"
    assert absent(old)["memory_reserved_bytes"] == "not_supported"


def test_d46_memory_that_is_not_available_is_absent(board: Board) -> None:
    """D46: 0xFFFFFFFFFFFFFFFF is VALUE_NOT_AVAILABLE; a GPU instance id of 4294967295 is none."""
    card = board(change=lambda s: s.set(every__memory_used_bytes=0xFFFFFFFFFFFFFFFF)).card()
    assert absent(card)["memory_used_bytes"] == "error"
    assert not card.info.HasField("partition")
