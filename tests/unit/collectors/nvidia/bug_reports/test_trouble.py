"""Reports about cards that are lost, drivers that break and what leaks then, each with its input: peers.md D4, accelerators.md §23.26."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.nvidia.plugin import create
from tests.fakes import nvml
from tests.unit.collectors.nvidia.bug_reports.given import Board, board, fake_nvml_library
from tests.unit.collectors.nvidia.rig import ENV, absent, values

__all__ = ["board", "fake_nvml_library"]


def test_d48_a_card_that_gives_no_handle_hides_no_other(board: Board) -> None:
    """D48 (categraf#1056, telegraf#9785): "Unable to determine the device handle" of one card ended the report of all."""
    rig = board(count=4, change=lambda s: s.set(_2__bus_id="00000000:CF:00.0"))
    rig.read()
    rig.state.fail("nvmlDeviceGetHandleByIndex", 999, device=2)
    rig.state.lose(2, 999)
    rig.read()
    samples = rig.read()
    assert [len(values(sample)) > 60 for sample in samples] == [True, True, False, True]
    assert (len(samples), samples[2].info.bdf) == (4, "0000:cf:00.0")
    assert len(set(absent(samples[2]).values())) == 1, "the failure itself is a sample: each field with its reason"


def test_d49_a_card_that_looks_healthy_may_ask_for_a_reset(board: Board) -> None:
    """D49 (nvidia_gpu_exporter#393): fan ERR!, other numbers fine, only the recovery action says Reset."""
    wrong = {"_14__bus_id": "00000000:CC:00.0", "_14__fan_percent": nvml.code(999), "_14__field__230": 1}
    rig = board(count=16, change=lambda s: s.set(every__field__230=0, **wrong))
    rig.read()
    samples = rig.read()
    assert [sample.recovery_action for sample in samples] == [0] * 14 + [1, 0]
    card = samples[14]
    assert (card.info.bdf, absent(card)["fan_ratio"]) == ("0000:cc:00.0", "error")
    assert card.HasField("power_watts")


def test_d52_a_card_that_was_plugged_in_is_found(board: Board) -> None:
    """D52 (gpu-operator#482): a new GPU is not discovered; a session lists only what was there at its start."""
    rig = board(count=2)
    rig.state.unplug(1)
    rig.plugin.cards.reopen()
    assert len(rig.read()) == 1
    rig.state.plug(1)
    rig.read()
    rig.plugin.cards.look_anew = True  # what the comparison with the PCI bus asks for
    assert len(rig.read()) == 2


def test_d54_unknown_error_after_a_container_reload_is_told_once(board: Board) -> None:
    """D54 (nvidia-container-toolkit#48): every call fails with 999 until the container is started anew."""
    rig = board()
    rig.read()
    rig.state.break_container()
    rig.read(slow=False)
    assert rig.said() == ["source_unavailable"]
    assert "daemon-reload" in rig.events()[0].text
    for _ in range(20):
        rig.read(slow=False)
        assert rig.said() == []
    rig.state.mend_container()
    rig.read(seconds=60)
    assert rig.said() == ["recovered"]


@pytest.mark.parametrize(
    "symbols",
    [
        ("nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfo"),
        ("nvmlDeviceGetMemoryInfo_v2",),
        ("nvmlDeviceGetPlatformInfo", "nvmlDeviceGetSramEccErrorStatus", "nvmlDeviceGetMarginTemperature", "nvmlDeviceGetTemperatureV"),
        ("nvmlGpmQueryDeviceSupport", "nvmlDeviceGetMigMode", "nvmlDeviceGetNumaNodeId", "nvmlSystemGetCudaDriverVersion_v2"),
        ("nvmlDeviceGetFieldValues",),
    ],
    ids=["fabric", "memory v2", "newer readings", "newer identity", "field values"],
)
def test_d55_a_driver_without_a_symbol_lacks_only_that(board: Board, symbols: tuple[str, ...]) -> None:
    """D55 (gpud#1183, pynvml#43): an undefined symbol ended the process."""

    def missing(state: nvml.State) -> None:
        for symbol in symbols:
            state.fail(symbol, 13)

    card = board(change=missing).card()
    assert card.utilization_ratio == 1.0
    assert card.memory_total_bytes == 85_520_809_984
    assert card.HasField("memory_used_bytes")
    assert card.temperature_celsius == 59


def test_d57_an_unknown_return_code_of_one_call_is_an_error_of_one_field(board: Board) -> None:
    """D57 (HAMi#1089): "nvml get memory error ret=999"."""
    card = board(change=lambda s: s.fail("nvmlDeviceGetMemoryInfo", 999)).card()
    assert absent(card)["memory_used_bytes"] == "error"
    assert card.HasField("power_watts")
    assert card.info.memory_kind == ""


def test_d58_a_failing_driver_costs_no_memory_and_no_descriptor(board: Board) -> None:
    """D58 (gpustack#5342): 37 GiB and 201,000 descriptors in ten days from an exception kept and raised again."""
    rig = board(count=2)
    rig.read()
    rig.state.break_container()
    rig.read(seconds=60)

    def held() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = held()
    for _ in range(50):
        rig.read(seconds=60)
    assert held() == before
    assert len(rig.plugin._odd) == 0


def test_one_cards_nonsense_hides_no_other_and_is_counted(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """D2, D48: an exception that nobody thought of is the absence of that card's values."""
    rig = board(count=2)
    rig.read()
    broken = next(iter(rig.plugin.cards))
    monkeypatch.setattr(broken.profiler, "read", lambda: 1 / 0)
    first, second = rig.read()
    assert set(absent(first).values()) == {"error"}
    assert second.HasField("power_watts")
    assert rig.last.rejects[("power_watts", "error")] == 1


def test_s26_a_library_that_is_opened_again_and_again_leaks_nothing(board: Board) -> None:
    """§23.26 (gpustack/runtime#14): initialising the library leaked on each try."""
    rig = board()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        rig.plugin.cards.reopen()
        rig.read()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_unknown_setting_is_named() -> None:
    """categraf#1056: a plugin that does not start has to say why."""
    with pytest.raises(ValueError, match="profilling"):
        create({"profilling": True}, ENV)
