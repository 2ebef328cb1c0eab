"""The plugin on the fake libnvidia-ml, through the real pynvml: values, lost cards, old drivers, and what it says without a driver."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from collectors.contract import Env, Reading, Ready, Unavailable
from collectors.contract import Plugin as Contract
from collectors.nvidia.driver import driver_epoch
from collectors.nvidia.plugin import Plugin, create
from collectors.nvidia.remedy import Missing
from collectors.nvidia.settings import Nvidia
from collectors.worker import FAST, FAST_AND_SLOW
from schemas.catalogue import BY_NUMBER, CATALOGUE
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import REASON_OF_NUMBER
from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library, old_nvml_library

__all__ = ["fake_nvml", "fake_nvml_library", "old_nvml_library"]
ENV = Env(NodeRef("c", "n"), "boot", "0", 10**9)
ALONE = {"processes": False, "pci_check": False}
"""Neither this machine's PCI bus nor its processes have anything to do with the fake cards."""
NOT_ON_H100 = (
    "fan_ratio",
    "throttled_board_limit_seconds",
    "throttled_low_utilization_seconds",
    "throttled_reliability_seconds",
    "pcie_tx_bytes_per_second",  # it counts bytes
    "pcie_rx_bytes_per_second",
    "retired_pages_single_bit",  # it remaps rows
    "retired_pages_double_bit",
    "retired_pages_pending",
    "fabric_unhealthy",  # the capture has N/A in each word
    "temperature_memory_max_celsius",  # told in the core's terms only
    "license_valid",
)


@pytest.fixture
def plugin(fake_nvml: nvml.State) -> Iterator[Contract]:
    made = create(ALONE, ENV)
    assert isinstance(made.probe(), Ready)
    yield made
    made.close()


class Clock:
    """The monotonic clock, as a test moves it."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def read(plugin: Contract, *, slow: bool = True) -> Reading:
    return plugin.read(FAST_AND_SLOW if slow else FAST, time.monotonic() + 60)


def samples(reading: Reading) -> tuple[v1.DeviceSample, ...]:
    return reading.samples[0].samples


def reasons(sample: v1.DeviceSample) -> dict[str, str]:
    return {BY_NUMBER[n].name: REASON_OF_NUMBER[a.reason] for a in sample.absences for n in a.field_number}


def said(reading: Reading) -> list[tuple[str, str]]:
    events = [event for event in reading.events if isinstance(event, v1.DeviceEvent)]
    return [(v1.DeviceEventKind.Name(event.kind).removeprefix("DEVICE_EVENT_KIND_").lower(), event.uid[-2:]) for event in events]


def test_a_card_reads_as_its_state_says(plugin: Contract) -> None:
    read(plugin)
    reading = read(plugin)
    first, second = samples(reading)
    assert (first.index, second.index) == (0, 1)
    assert first.power_watts == pytest.approx(588.39)
    assert first.temperature_celsius == 59
    assert first.memory_temperature_celsius == 55
    assert first.memory_used_bytes == 20_780_679_168
    assert first.memory_total_bytes == 85_520_809_984
    assert first.energy_joules == pytest.approx(918_273_645.123)
    assert first.interconnect_tx_bytes == 1_048_576_000 * 1024
    assert first.sm_active_ratio == pytest.approx(0.975)
    assert (first.interconnect_links_active, first.interconnect_errors) == (18, 18)
    assert (first.temperature_slowdown_celsius, first.temperature_shutdown_celsius) == (87, 93)
    assert reasons(first) == dict.fromkeys(NOT_ON_H100, "not_supported")
    assert reading.rejects == {(name, "not_supported"): 2 for name in NOT_ON_H100}
    assert first.info.model == "NVIDIA H100 80GB HBM3"
    assert (first.info.bdf, first.info.firmware_version) == ("0000:10:00.0", "96.00.A5.00.01")
    assert reading.samples[0].driver_version == "590.48.01"
    assert reading.samples[0].boot_id == "boot"


def test_slow_fields_are_read_only_when_due(plugin: Contract) -> None:
    first, _ = samples(read(plugin, slow=False))
    assert not first.HasField("power_limit_watts")
    assert "power_limit_watts" not in reasons(first)


def test_a_change_is_seen_at_the_next_read(plugin: Contract, fake_nvml: nvml.State) -> None:
    read(plugin)
    fake_nvml.set(_0__temperature_celsius=91, _0__clock_reasons="0x40")
    first, second = samples(read(plugin, slow=False))
    assert (first.temperature_celsius, first.throttle_reasons) == (91, 1 << 6)
    assert second.temperature_celsius == 59


@pytest.mark.parametrize(("code", "reason"), [(3, "not_supported"), (4, "no_permission"), (999, "error")])
def test_one_call_that_fails_costs_one_field(plugin: Contract, fake_nvml: nvml.State, code: int, reason: str) -> None:
    fake_nvml.set(_0__temperature_celsius=f"!{code}")
    first, second = samples(read(plugin, slow=False))
    assert reasons(first)["temperature_celsius"] == reason
    assert first.power_watts == pytest.approx(588.39)
    assert second.temperature_celsius == 59


def test_a_lost_card_is_told_once_and_hides_no_other(plugin: Contract, fake_nvml: nvml.State) -> None:
    read(plugin)
    fake_nvml.set(_0__error=15)
    at_once = read(plugin, slow=False)
    first, second = samples(at_once)
    assert set(reasons(first)) == {metric.name for metric in CATALOGUE}
    assert set(reasons(first).values()) == {"lost"}
    assert second.temperature_celsius == 59
    assert said(at_once) == [("lost", "90")]
    assert said(read(plugin, slow=False)) == []
    later = read(plugin)
    assert [sample.uid[-2:] for sample in samples(later)] == ["90", "91"]
    assert said(later) == []


def test_a_card_that_comes_back_is_told(plugin: Contract, fake_nvml: nvml.State) -> None:
    read(plugin)
    fake_nvml.set(_0__error=15)
    read(plugin, slow=False)
    fake_nvml.set(_0__error=0)
    back = read(plugin)
    assert said(back) == [("returned", "90")]
    assert samples(back)[0].temperature_celsius == 59
    assert said(read(plugin)) == []


def test_a_card_without_a_handle_at_start_is_told_and_the_others_read(plugin: Contract, fake_nvml: nvml.State) -> None:
    fake_nvml.set(_0__nvmlDeviceGetHandleByIndex="!15")
    fresh = create(ALONE, ENV)
    assert fresh.probe() == Ready(("nvidia:GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a91",))
    reading = read(fresh)
    assert said(reading) == [("lost", "")]
    assert len(samples(reading)) == 1
    assert said(read(fresh)) == []
    fresh.close()


def test_under_mig_the_cards_utilisation_is_absent(plugin: Contract, fake_nvml: nvml.State) -> None:
    fake_nvml.set(_1__mig_mode=1)
    _, second = samples(read(plugin))
    assert {name: reasons(second)[name] for name in ("utilization_ratio", "sm_active_ratio")} == {
        "utilization_ratio": "not_supported",
        "sm_active_ratio": "not_supported",
    }
    assert second.power_watts == pytest.approx(588.39)


def test_a_card_without_profiling_has_no_activity(plugin: Contract, fake_nvml: nvml.State) -> None:
    fake_nvml.set(every__gpm="!3")
    assert reasons(samples(read(plugin))[0])["tensor_active_ratio"] == "not_supported"


@pytest.mark.parametrize(
    ("settings", "absent"),
    [({"profiling": False}, "sm_active_ratio"), ({"link_errors": False}, "interconnect_errors")],
    ids=["profiling", "link_errors"],
)
def test_kill_switches(fake_nvml: nvml.State, settings: Mapping[str, Any], absent: str) -> None:
    made = create(settings, ENV)
    made.probe()
    read(made)
    assert reasons(samples(read(made))[0])[absent] == "not_supported"
    made.close()


def test_past_the_deadline_the_rest_is_absent_but_listed(plugin: Contract) -> None:
    reading = plugin.read(FAST, time.monotonic() - 1)
    assert [reasons(sample)["power_watts"] for sample in samples(reading)] == ["error", "error"]


def test_a_slow_driver_runs_into_the_deadline(plugin: Contract, fake_nvml: nvml.State) -> None:
    fake_nvml.set(latency_ms=5)
    first, second = samples(plugin.read(FAST, time.monotonic() + 0.02))
    assert first.HasField("power_watts")
    assert reasons(second)["power_watts"] == "error"


def test_an_old_driver_lacks_calls_not_readings(old_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = nvml.State(tmp_path / "nvml.state")
    state.set(every__field__186="!2", every__field__75="!2", every__violation_thermal_nanoseconds=10**9, every__field__82="!2")
    fixtures.loaded(old_nvml_library, monkeypatch, state)
    made = create(ALONE, ENV)
    assert isinstance(made.probe(), Ready)
    (sample,) = samples(read(made))
    made.close()
    fixtures.forget()
    assert sample.temperature_celsius == 59
    assert sample.throttle_reasons == 0
    assert sample.power_watts == pytest.approx(629.45)
    assert sample.throttled_thermal_seconds == 1
    missing = reasons(sample)
    assert {missing[name] for name in ("sm_active_ratio", "memory_temperature_celsius", "temperature_slowdown_celsius")} == {
        "not_supported"
    }


@pytest.mark.parametrize(
    ("code", "says"),
    [(9, "modprobe nvidia"), (4, "/dev/nvidiactl"), (18, "reboot or reload"), (999, "NVML 999")],
    ids=["not loaded", "no permission", "mismatch", "unknown"],
)
def test_a_driver_that_cannot_be_used_is_unavailable_with_its_remedy(fake_nvml: nvml.State, code: int, says: str) -> None:
    fake_nvml.set(nvmlInit=f"!{code}")
    made = create({"retry_seconds": 7}, ENV)
    found = made.probe()
    assert isinstance(found, Unavailable)
    assert says in found.reason
    assert found.retry_s == 7
    fake_nvml.set(nvmlInit=0)
    assert isinstance(made.probe(), Ready)
    made.close()


@pytest.mark.parametrize("code", [1, 9, 999])
def test_a_driver_that_goes_away_is_told_once_and_comes_back_by_itself(fake_nvml: nvml.State, code: int) -> None:
    clock = Clock()
    made = Plugin(Nvidia.model_validate(ALONE), ENV, monotonic=clock)
    made.probe()
    read(made)
    fake_nvml.break_container(code)
    away = read(made, slow=False)
    assert [(kind, uid) for kind, uid in said(away)] == [("source_unavailable", "")]
    assert {reasons(sample)["power_watts"] for sample in samples(away)} == {"error"}
    for _ in range(5):
        clock.at += 10
        assert said(read(made, slow=False)) == []
    fake_nvml.mend_container()
    fake_nvml.set(every__field__83=918_273_945_123)
    clock.at += 60
    back = read(made, slow=False)
    assert said(back) == [("recovered", "")]
    assert samples(back)[0].temperature_celsius == 59
    assert samples(back)[0].HasField("power_limit_watts")
    assert said(read(made)) == []
    made.close()


def test_a_session_that_ends_while_the_driver_stays_is_opened_again_in_the_same_read(plugin: Contract, fake_nvml: nvml.State) -> None:
    read(plugin)
    fake_nvml.unload_driver()
    fake_nvml.load_driver()
    again = read(plugin, slow=False)
    assert said(again) == []
    assert samples(again)[0].temperature_celsius == 59


def test_a_library_of_another_version_needs_a_new_process(plugin: Contract, fake_nvml: nvml.State) -> None:
    read(plugin)
    fake_nvml.break_container(18)
    with pytest.raises(Missing, match="different versions"):
        read(plugin, slow=False)


def test_new_sessions_are_tried_with_growing_waits(fake_nvml: nvml.State, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    made = Plugin(Nvidia.model_validate(ALONE), ENV, monotonic=clock)
    made.probe()
    read(made)
    fake_nvml.break_container()
    inits = []
    original = made.source.open

    def counted() -> None:
        inits.append(clock.at)
        original()

    monkeypatch.setattr(made.source, "open", counted)
    for _ in range(100):
        read(made, slow=False)
        clock.at += 1
    made.close()
    assert inits == [100, 101, 103, 107, 115, 131, 163]


def test_a_driver_that_was_loaded_again_is_told(fake_nvml: nvml.State, tmp_path: Path) -> None:
    module = tmp_path / "module"
    module.mkdir()
    made = Plugin(Nvidia.model_validate(ALONE), ENV, module=module)
    made.probe()
    epoch = read(made).samples[0].driver_epoch
    fake_nvml.unload_driver()
    read(made)
    module.rename(tmp_path / "before")
    module.mkdir()
    fake_nvml.load_driver("590.60.02")
    made._retry.succeeded()
    again = read(made)
    assert ("driver_reloaded", "") in said(again)
    assert again.samples[0].driver_epoch not in (0, epoch)
    assert again.samples[0].driver_version == "590.60.02"
    made.close()


def test_without_the_library_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run_probe({"LD_LIBRARY_PATH": str(tmp_path)})
    if "Ready" in done:
        pytest.skip("this host has an NVIDIA driver")
    assert "libnvidia-ml.so.1 was not found" in done
    assert "enabled: false" in done


def test_a_child_reads_it_by_its_library_path(fake_nvml_library: Path, tmp_path: Path) -> None:
    state = nvml.State(tmp_path / "nvml.state", count=3)
    done = run_probe({"LD_LIBRARY_PATH": str(fake_nvml_library.parent), nvml.STATE_VARIABLE: str(state.path)})
    assert done.count("nvidia:GPU-") == 3


def run_probe(environment: Mapping[str, str]) -> str:
    code = (
        "from collectors.nvidia.plugin import create; from collectors.contract import Env; from schemas.identity import NodeRef;"
        "print(create({}, Env(NodeRef('c', 'n'), '', '0', 1)).probe())"
    )
    return subprocess.run([sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True).stdout


def test_a_shadowing_package_is_unavailable_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pynvml"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    found = create({}, ENV).probe()
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    assert isinstance(found, Unavailable)
    assert "is not nvidia-ml-py 13" in found.reason


def test_the_deprecated_distribution_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    info = tmp_path / "pynvml-13.0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pynvml\nVersion: 13.0.1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    create({}, ENV)
    assert "pip uninstall pynvml" in caplog.text


def test_a_driver_load_has_a_number(tmp_path: Path) -> None:
    assert driver_epoch(tmp_path) > 0
    assert driver_epoch(tmp_path / "none") == 0


def test_sessions_leak_nothing(plugin: Contract, fake_nvml: nvml.State) -> None:
    fake_nvml.set(_0__error=15)
    read(plugin)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        read(plugin)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
