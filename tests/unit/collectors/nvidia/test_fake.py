"""The fake libnvidia-ml keeps NVML's rules, as the unmodified bindings rely on them."""

from __future__ import annotations

import ctypes

import pynvml
import pytest

from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library

__all__ = ["fake_nvml", "fake_nvml_library"]


@pytest.fixture
def handle(fake_nvml: nvml.State) -> object:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(0)


def test_a_list_is_asked_for_in_two_calls(handle: object) -> None:
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    assert [(p.pid, p.usedGpuMemory) for p in processes] == [(11327, 2_690_646_016), (11328, None)]


def test_an_empty_list_needs_one(handle: object, fake_nvml: nvml.State) -> None:
    fake_nvml.set(_0__processes=0)
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(handle) == []


def test_too_little_room_is_said_with_the_count(handle: object) -> None:
    count = ctypes.c_uint(0)
    code = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetComputeRunningProcesses_v3")(handle, ctypes.byref(count), None)
    assert (code, count.value) == (pynvml.NVML_ERROR_INSUFFICIENT_SIZE, 2)


def test_a_wrong_version_word_is_refused(handle: object) -> None:
    with pytest.raises(pynvml.NVMLError_ArgumentVersionMismatch):
        pynvml.nvmlDeviceGetMemoryInfo(handle, version=0x0300_0028)


def test_too_short_a_buffer_is_refused(handle: object) -> None:
    room = ctypes.create_string_buffer(4)
    code = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetUUID")(handle, room, ctypes.c_uint(4))
    assert code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE


def test_a_call_before_init_is_refused(fake_nvml: nvml.State) -> None:
    while True:
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError_Uninitialized:
            break
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


def test_field_values_carry_their_own_return_codes(handle: object) -> None:
    known, unknown = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_MEMORY_TEMP, 9999])
    assert (known.nvmlReturn, known.value.uiVal) == (0, 55)
    assert unknown.nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_a_symbol_that_is_not_there_is_function_not_found(handle: object) -> None:
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        pynvml.nvmlDeviceGetBrand(handle)
