"""The fake libnvidia-ml does with its state what the guide says: values, faults, time, hangs, sessions, counts."""

from __future__ import annotations

import ctypes
import threading
import time
from pathlib import Path

import pynvml
import pytest

from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library

__all__ = ["fake_nvml", "fake_nvml_library"]


@pytest.fixture
def handle(fake_nvml: nvml.State) -> object:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(0)


def temperature(handle: object) -> int:
    return int(pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU))


def test_a_change_is_seen_by_the_next_call(handle: object, fake_nvml: nvml.State) -> None:
    seen = []
    for celsius in range(40, 60):
        fake_nvml.device(0).set(temperature_celsius=celsius)
        seen.append(temperature(handle))
    assert seen == list(range(40, 60))


def test_a_file_edited_by_hand_is_seen_within_a_moment(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.path.write_text(fake_nvml.path.read_text().replace('"temperature_celsius": 59', '"temperature_celsius": 77'))
    until = time.monotonic() + 5
    while temperature(handle) != 77 and time.monotonic() < until:
        time.sleep(0.01)
    assert temperature(handle) == 77


def test_a_file_that_is_no_json_leaves_the_last_word_standing(
    handle: object, fake_nvml: nvml.State, capfd: pytest.CaptureFixture[str]
) -> None:
    fake_nvml.path.write_text('{"devices": [')
    fake_nvml._tell()
    assert temperature(handle) == 59
    assert "is not a JSON object" in capfd.readouterr().err


def test_without_a_file_there_is_no_driver(fake_nvml: nvml.State) -> None:
    fake_nvml.path.unlink()
    fake_nvml._tell()
    with pytest.raises(pynvml.NVMLError_DriverNotLoaded):
        pynvml.nvmlInit()


def test_one_card_may_differ_from_all(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.every.set(temperature_celsius=44)
    fake_nvml.device(1).set(temperature_celsius=66)
    assert [temperature(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in (0, 1)] == [44, 66]
    fake_nvml.device(1).set(temperature_celsius=None)
    with pytest.raises(pynvml.NVMLError_NotSupported):
        temperature(pynvml.nvmlDeviceGetHandleByIndex(1))
    fake_nvml.device(1).forget("temperature_celsius")
    assert temperature(pynvml.nvmlDeviceGetHandleByIndex(1)) == 44


def test_a_call_fails_for_one_card_or_for_all_in_every_version(handle: object, fake_nvml: nvml.State) -> None:
    second = pynvml.nvmlDeviceGetHandleByIndex(1)
    fake_nvml.fail("nvmlDeviceGetPowerUsage", 999, device=1)
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == 629_450
    with pytest.raises(pynvml.NVMLError_Unknown):
        pynvml.nvmlDeviceGetPowerUsage(second)
    fake_nvml.fail("nvmlDeviceGetMemoryInfo", 4)
    with pytest.raises(pynvml.NVMLError_NoPermission):
        pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
    fake_nvml.fail("nvmlDeviceGetMemoryInfo", 0)
    assert pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used == 20_780_679_168


@pytest.mark.parametrize(("code", "error"), [(15, pynvml.NVMLError_GpuIsLost), (16, pynvml.NVMLError_ResetRequired)])
def test_a_lost_card_fails_every_call_until_it_is_back(handle: object, fake_nvml: nvml.State, code: int, error: type[Exception]) -> None:
    fake_nvml.lose(0, code)
    for call in (pynvml.nvmlDeviceGetUUID, pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetPciInfo):
        with pytest.raises(error):
            call(handle)
    with pytest.raises(error):
        pynvml.nvmlDeviceGetHandleByIndex(0)
    assert temperature(pynvml.nvmlDeviceGetHandleByIndex(1)) == 59
    fake_nvml.recover(0)
    assert temperature(handle) == 59


def test_a_pulled_card_is_lost_to_this_session_and_not_in_the_next(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.unplug(0)
    assert pynvml.nvmlDeviceGetCount() == 2
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetUUID(handle)
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 1
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0)).endswith("91")
    fake_nvml.plug(0)
    assert pynvml.nvmlDeviceGetCount() == 1
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 2


def test_a_replaced_card_is_lost_to_the_session_that_knew_the_old_one(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.device(0).set(uuid="GPU-00000000-1111-2222-3333-444444444444")
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetSerial(handle)


def test_a_reload_of_the_driver_ends_sessions_and_counters(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.unload_driver()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        temperature(handle)
    with pytest.raises(pynvml.NVMLError_DriverNotLoaded):
        pynvml.nvmlInit()
    fake_nvml.load_driver("595.80")
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        temperature(handle)
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlSystemGetDriverVersion() == "595.80"
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(pynvml.nvmlDeviceGetHandleByIndex(0)) == 0


def test_a_container_after_a_runtime_reload_knows_nothing(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.break_container()
    with pytest.raises(pynvml.NVMLError_Unknown):
        temperature(handle)
    with pytest.raises(pynvml.NVMLError_Unknown):
        pynvml.nvmlInit()
    fake_nvml.mend_container()
    assert temperature(handle) == 59


def test_a_call_takes_the_time_it_is_given(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.latency(20_000, "nvmlDeviceGetPowerUsage", device=0)
    second = pynvml.nvmlDeviceGetHandleByIndex(1)
    started = time.monotonic()
    pynvml.nvmlDeviceGetPowerUsage(handle)
    slow = time.monotonic() - started
    assert slow >= 0.02
    started = time.monotonic()
    pynvml.nvmlDeviceGetPowerUsage(second)
    assert time.monotonic() - started < slow


def test_a_short_call_burns_the_processor(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.latency(900)
    started = time.thread_time()
    for _ in range(20):
        pynvml.nvmlDeviceGetPowerUsage(handle)
    assert time.thread_time() - started > 0.009


def test_a_call_hangs_until_it_is_released_and_stops_no_other(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.hang("nvmlDeviceGetPowerUsage", device=0)
    answers: list[int] = []
    stuck = threading.Thread(target=lambda: answers.append(pynvml.nvmlDeviceGetPowerUsage(handle)), daemon=True)
    stuck.start()
    stuck.join(0.05)
    assert stuck.is_alive()
    assert temperature(handle) == 59
    assert pynvml.nvmlDeviceGetPowerUsage(pynvml.nvmlDeviceGetHandleByIndex(1)) == 629_450
    fake_nvml.release("nvmlDeviceGetPowerUsage", device=0)
    stuck.join(10)
    assert answers == [629_450]


def test_many_threads_may_call_while_the_state_changes(handle: object, fake_nvml: nvml.State) -> None:
    wrong: list[object] = []

    def look() -> None:
        for _ in range(300):
            found = pynvml.nvmlDeviceGetName(handle)
            if found != "NVIDIA H100 80GB HBM3":
                wrong.append(found)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for celsius in range(40):
        fake_nvml.every.set(temperature_celsius=celsius)
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("stride", [16, 32], ids=["the first version", "one with a later member"])
def test_processes_of_another_structure_give_garbage(handle: object, fake_nvml: nvml.State, stride: int) -> None:
    fake_nvml.processes(0, [{"pid": 100 + i, "memory_bytes": 2**30} for i in range(4)])
    good = [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    fake_nvml.device(0).set(process_stride_bytes=stride)
    bad = [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    assert good == [100, 101, 102, 103]
    assert bad[0] == 100
    assert len(bad) == 4
    assert bad != good


def test_missing_symbols_are_not_there(fake_nvml_library: Path) -> None:
    assert hasattr(ctypes.CDLL(str(fake_nvml_library)), "nvmlDeviceGetFanSpeed")
    without = nvml.build(fake_nvml_library.parents[1], missing=["nvmlDeviceGetFanSpeed"])
    assert not hasattr(ctypes.CDLL(str(without)), "nvmlDeviceGetFanSpeed")
    assert hasattr(ctypes.CDLL(str(without)), "nvmlDeviceGetFanSpeed_v2")
    with pytest.raises(ValueError, match="no symbol nvmlNone"):
        nvml.build(fake_nvml_library.parents[1], missing=["nvmlNone"])


def test_without_a_compiler_it_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert nvml.compiler() is None
    with pytest.raises(nvml.NoCompiler, match="apt install gcc"):
        nvml.build(tmp_path)
