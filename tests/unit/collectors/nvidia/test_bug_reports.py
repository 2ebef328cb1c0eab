"""Bug reports of others that could be ours, each with its input and what is right; rows of peers.md D and accelerators.md §23.

Rows about kernel logs, processes, DCGM's exposition and pods are tested where those are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.nvidia.plugin import create
from collectors.nvidia.slow_fields import fabric_unhealthy
from collectors.nvidia.unified import unified_memory
from schemas.catalogue import CATALOGUE
from schemas.values import Absent
from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from tests.fakes.nvml.fixtures import fake_nvml_library
from tests.unit.collectors.nvidia.rig import ENV, Rig, absent, values

__all__ = ["fake_nvml_library"]
Board = Callable[..., Rig]


@pytest.fixture
def board(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    """Makes a rig with cards of a board; settings of the plugin by keyword."""
    made: list[Rig] = []

    def make(profile: str = "h100", count: int = 1, change: Callable[[nvml.State], object] | None = None, **settings: object) -> Rig:
        state = nvml.State(tmp_path / "nvml.json", profile, count=count)
        state.data["pcie_window_us"] = 0
        if change is not None:
            change(state)
        state.set()
        fixtures.loaded(fake_nvml_library, monkeypatch, state)
        made.append(Rig(state, **settings))  # type: ignore[arg-type]  # passed through
        return made[-1]

    yield make
    for rig in made:
        rig.plugin.close()
    fixtures.forget()


# ---- D1: blank, sentinel and N/A values


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
    card = board(change=lambda s: s.set(every__utilization_percent=percent)).card()
    assert absent(card)["utilization_ratio"] == "out_of_range"


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


# ---- D2: MIG and sharing


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


# ---- D3: memory


def test_d39_used_memory_leaves_out_what_is_reserved(board: Board) -> None:
    """D39 (nvitop#13, gpustat#116): since R510 `used` of the first version includes the reserved memory; the second tells it apart."""
    card = board().card()
    assert card.memory_used_bytes == 20_780_679_168
    assert card.memory_reserved_bytes == 502_267_904


def test_d46_memory_that_is_not_available_is_absent(board: Board) -> None:
    """D46: 0xFFFFFFFFFFFFFFFF is VALUE_NOT_AVAILABLE; a GPU instance id of 4294967295 is none."""
    card = board(change=lambda s: s.set(every__memory_used_bytes=0xFFFFFFFFFFFFFFFF)).card()
    assert absent(card)["memory_used_bytes"] == "error"
    assert not card.info.HasField("partition")


# ---- D4: lost, hung, hot-plugged


def test_d48_a_card_that_gives_no_handle_hides_no_other(board: Board) -> None:
    """D48 (categraf#1056, telegraf#9785): "Unable to determine the device handle" of one card ended the report of all."""
    rig = board(count=4)
    rig.read()
    rig.state.fail("nvmlDeviceGetHandleByIndex", 999, device=2)
    rig.state.lose(2, 999)
    rig.read()
    samples = rig.read()
    assert [len(values(sample)) > 60 for sample in samples] == [True, True, False, True]
    assert len(samples) == 4


def test_d49_a_card_that_looks_healthy_may_ask_for_a_reset(board: Board) -> None:
    """D49 (nvidia_gpu_exporter#393): fan ERR!, other numbers fine, only the recovery action says Reset."""
    card = board(change=lambda s: s.set(every__fan_percent=nvml.code(999), every__field__230=1)).card()
    assert absent(card)["fan_ratio"] == "error"
    assert card.recovery_action == 1
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


# ---- D5: counters and units


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


MEMINFO = "MemTotal:       127600748 kB\nMemFree:          800000 kB\nMemAvailable:   120852389 kB\nSwapTotal:      16777212 kB\n"


def test_d70_nothing_is_divided_by_a_memory_of_zero(board: Board, tmp_path: Path) -> None:
    """D70, D71 (gpustack c8284ab2): a total of 0 is a chip without memory of its own."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(MEMINFO)
    card = board("gb10", change=lambda s: s.set(every__memory_total_bytes=0, every__memory_used_bytes=0), meminfo=meminfo).card()
    assert card.memory_total_bytes == 127_600_748 * 1024
    assert card.info.memory_kind == "unified"


def test_d71_unified_memory_is_the_hosts_without_swap_and_marked(board: Board, tmp_path: Path) -> None:
    """D71 (gpud#1084, nvtop#411, gpustack): MemTotal 127600748 kB; figures that do not add up, or include 16 GiB of swap."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(MEMINFO)
    rig = board("gb10", meminfo=meminfo)
    for slow in (True, False):
        card = rig.card(slow=slow)
        assert card.memory_used_bytes == (127_600_748 - 120_852_389) * 1024
    assert rig.card().memory_total_bytes == 130_663_165_952
    assert absent(rig.card())["memory_reserved_bytes"] == "not_supported"
    assert card.info.memory_kind == "unified"


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


# ---- D6: health


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


def test_d83_a_pcie_board_has_no_fabric_to_be_unhealthy_in(board: Board) -> None:
    """D83 (gpud#1140, #1147): fabric "Not Supported" on an H100 PCIe."""
    rig = board(change=lambda s: s.every.set(fabric={"state": 0, "status": 3, "health_mask": 0}))
    said = absent(rig.card())
    assert (said["fabric_state"], said["fabric_unhealthy"]) == ("not_supported", "not_supported")


@pytest.mark.parametrize("margin", [0, -5])
def test_d85_a_margin_of_zero_or_less_is_a_value(board: Board, margin: int) -> None:
    """D85 (gpud#1208): margins of 0 and -5 °C; what they mean follows from the card's own limits, which are told beside them."""
    card = board(change=lambda s: s.set(every__margin_celsius=margin, every__temperature_celsius=85 - margin)).card()
    assert card.temperature_margin_celsius == margin
    assert card.temperature_slowdown_celsius == 87


# ---- accelerators.md §23


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
