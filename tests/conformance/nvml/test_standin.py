"""What the collector relies on of any libnvidia-ml.so.1, said with the unmodified bindings; nothing here knows how it is driven."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml
import pytest

NOT_HERE = (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound)
ALL_LINKS = 0xFFFFFFFF


def function(name: str) -> Callable[..., int]:
    try:
        found: Callable[..., int] = pynvml._nvmlGetFunctionPointer(name)
    except pynvml.NVMLError_FunctionNotFound:
        pytest.skip(f"this library has no {name}")
    return found


def test_sessions_are_counted(board: str) -> None:
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() > 0
    pynvml.nvmlShutdown()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlShutdown()


def test_a_device_beyond_the_last_is_an_invalid_argument(handles: list[Any]) -> None:
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetHandleByIndex(len(handles))


def test_names_are_each_devices_own_and_stay(handles: list[Any]) -> None:
    uuids = [pynvml.nvmlDeviceGetUUID(handle) for handle in handles]
    assert len(set(uuids)) == len(uuids)
    assert all(uuid.startswith("GPU-") for uuid in uuids)
    assert uuids == [pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(len(handles))]
    assert [pynvml.nvmlDeviceGetIndex(handle) for handle in handles] == list(range(len(handles)))


def test_a_device_is_found_by_each_of_its_names(handles: list[Any]) -> None:
    for handle in handles:
        uuid = pynvml.nvmlDeviceGetUUID(handle)
        bus_id = pynvml.nvmlDeviceGetPciInfo(handle).busId
        for found in (pynvml.nvmlDeviceGetHandleByUUID(uuid), pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)):
            assert pynvml.nvmlDeviceGetUUID(found) == uuid
    with pytest.raises((pynvml.NVMLError_NotFound, pynvml.NVMLError_InvalidArgument)):
        pynvml.nvmlDeviceGetHandleByUUID("GPU-ffffffff-ffff-ffff-ffff-ffffffffffff")


def test_a_place_on_the_bus_is_told_in_text_and_numbers(handles: list[Any]) -> None:
    for handle in handles:
        pci = pynvml.nvmlDeviceGetPciInfo(handle)
        domain, bus, rest = pci.busId.split(":")
        assert (len(domain), int(domain, 16), int(bus, 16)) == (8, pci.domain, pci.bus)
        assert int(rest.partition(".")[0], 16) == pci.device
        assert pci.pciDeviceId & 0xFFFF == 0x10DE


@pytest.mark.parametrize("name", ["nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetVbiosVersion"])
def test_too_short_a_buffer_is_refused_and_left_alone(handles: list[Any], name: str) -> None:
    room = ctypes.create_string_buffer(b"\x7f" * 8, 8)
    assert function(name)(handles[0], room, ctypes.c_uint(2)) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert room.raw[2:] == b"\x7f" * 6


def test_no_handle_is_an_invalid_argument(handles: list[Any]) -> None:
    value = ctypes.c_uint()
    assert function("nvmlDeviceGetPowerUsage")(None, ctypes.byref(value)) == pynvml.NVML_ERROR_INVALID_ARGUMENT


VERSIONED = {
    "nvmlDeviceGetMemoryInfo_v2": pynvml.c_nvmlMemory_v2_t,
    "nvmlDeviceGetTemperatureV": pynvml.c_nvmlTemperature_v1_t,
    "nvmlDeviceGetMarginTemperature": pynvml.c_nvmlMarginTemperature_v1_t,
    "nvmlDeviceGetSramEccErrorStatus": pynvml.c_nvmlEccSramErrorStatus_v1_t,
    "nvmlDeviceGetGpuFabricInfoV": pynvml.c_nvmlGpuFabricInfo_v3_t,
    "nvmlDeviceGetPlatformInfo": pynvml.c_nvmlPlatformInfo_v2_t,
    "nvmlDeviceGetProcessesUtilizationInfo": pynvml.c_nvmlProcessesUtilizationInfo_v1_t,
    "nvmlDeviceGetRunningProcessDetailList": pynvml.c_nvmlProcessDetailList_v1_t,
    "nvmlGpmQueryDeviceSupport": pynvml.c_nvmlGpmSupport_t,
}


@pytest.mark.parametrize("name", list(VERSIONED))
def test_another_version_word_is_refused(handles: list[Any], name: str) -> None:
    structure = VERSIONED[name]()
    structure.version = 0x7F00_0004
    code = function(name)(handles[0], ctypes.byref(structure))
    assert code in (pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, pynvml.NVML_ERROR_NOT_SUPPORTED)


def test_memory_adds_up(handles: list[Any]) -> None:
    for handle in handles:
        try:
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        except NOT_HERE:
            continue  # memory that is the system's
        assert memory.used + memory.reserved + memory.free == memory.total
        old = pynvml.nvmlDeviceGetMemoryInfo(handle)
        assert (old.total, old.used) == (memory.total, memory.used + memory.reserved)


def test_a_card_in_mig_mode_has_no_utilisation(handles: list[Any]) -> None:
    for handle in handles:
        try:
            cut = pynvml.nvmlDeviceGetMigMode(handle)[0] == 1
        except NOT_HERE:
            cut = False
        if cut:
            with pytest.raises(pynvml.NVMLError_NotSupported):
                pynvml.nvmlDeviceGetUtilizationRates(handle)
        else:
            assert 0 <= pynvml.nvmlDeviceGetUtilizationRates(handle).gpu <= 100


def test_each_field_has_a_return_code_and_a_type_of_its_own(handles: list[Any]) -> None:
    asked = [
        pynvml.NVML_FI_DEV_ECC_CURRENT,
        (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
        4000,
        pynvml.NVML_FI_DEV_POWER_INSTANT,
    ]
    for handle in handles:
        values = pynvml.nvmlDeviceGetFieldValues(handle, asked)
        assert [v.fieldId for v in values] == [1, 138, 4000, 186]
        assert values[2].nvmlReturn in (pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_SUPPORTED)
        assert all(v.valueType in range(7) for v in values if v.nvmlReturn == 0)
        assert any(v.nvmlReturn == 0 for v in values)


LISTS = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_says_how_much_room_it_needs(handles: list[Any], name: str) -> None:
    for handle in handles:
        count = ctypes.c_uint(0)
        code = function(name)(handle, ctypes.byref(count), None)
        if code == pynvml.NVML_ERROR_NOT_SUPPORTED:
            continue
        assert (code, count.value > 0) in ((pynvml.NVML_SUCCESS, False), (pynvml.NVML_ERROR_INSUFFICIENT_SIZE, True))
        room = (pynvml.c_nvmlProcessInfo_v3_t * (count.value * 2 + 5))()
        had, count.value = count.value, len(room)
        assert function(name)(handle, ctypes.byref(count), room) == pynvml.NVML_SUCCESS
        assert count.value == had
        assert all(entry.pid > 0 for entry in room[: count.value])


def test_samples_of_processes_are_asked_for_in_two_calls(handles: list[Any]) -> None:
    for handle in handles:
        count = ctypes.c_uint(0)
        code = function("nvmlDeviceGetProcessUtilization")(handle, None, ctypes.byref(count), ctypes.c_ulonglong(0))
        none = (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED)
        assert code in none or (code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE and count.value > 0)


def test_an_instance_is_a_device_with_a_parent(handles: list[Any]) -> None:
    for parent in handles:
        try:
            slots = pynvml.nvmlDeviceGetMaxMigDeviceCount(parent)
            cut = pynvml.nvmlDeviceGetMigMode(parent)[0] == 1
        except NOT_HERE:
            continue
        found = []
        for index in range(slots if cut else 0):
            try:
                found.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, index))
            except pynvml.NVMLError_NotFound:
                continue  # a hole
        uuids = [pynvml.nvmlDeviceGetUUID(handle) for handle in found]
        assert all(uuid.startswith("MIG-") for uuid in uuids)
        assert len(set(uuids)) == len(uuids)
        for handle in found:
            assert pynvml.nvmlDeviceIsMigDeviceHandle(handle).value == 1
            card = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
            assert pynvml.nvmlDeviceGetUUID(card) == pynvml.nvmlDeviceGetUUID(parent)
            assert pynvml.nvmlDeviceGetMemoryInfo(handle).total < pynvml.nvmlDeviceGetMemoryInfo(parent).total
            assert pynvml.nvmlDeviceGetAttributes(handle).multiprocessorCount > 0
            assert pynvml.nvmlDeviceGetGpuInstanceId(handle) >= 0
            assert pynvml.nvmlDeviceGetComputeInstanceId(handle) >= 0
        assert pynvml.nvmlDeviceIsMigDeviceHandle(parent).value == 0


def test_waiting_for_an_event_ends_with_a_timeout(handles: list[Any]) -> None:
    events = pynvml.nvmlEventSetCreate()
    for handle in handles:
        wanted = pynvml.nvmlDeviceGetSupportedEventTypes(handle) & pynvml.nvmlEventTypeXidCriticalError
        if wanted:
            pynvml.nvmlDeviceRegisterEvents(handle, wanted, events)
    for milliseconds in (0, 1):
        with pytest.raises(pynvml.NVMLError_Timeout):
            pynvml.nvmlEventSetWait_v2(events, milliseconds)
    pynvml.nvmlEventSetFree(events)


def test_activity_is_between_two_samples_of_one_device(handles: list[Any]) -> None:
    for handle in handles:
        try:
            supported = pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice
        except NOT_HERE:
            continue
        first, second = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
        query = pynvml.c_nvmlGpmMetricsGet_t()
        query.version, query.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, 1
        query.metrics[0].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL
        query.sample1, query.sample2 = first, second
        with pytest.raises(pynvml.NVMLError):
            pynvml.nvmlGpmMetricsGet(query)
        if supported and not _cut(handle):
            pynvml.nvmlGpmSampleGet(handle, first)
            pynvml.nvmlGpmSampleGet(handle, second)
            answered = pynvml.nvmlGpmMetricsGet(query)
            assert answered.metrics[0].nvmlReturn == 0
            assert answered.metrics[0].value >= 0
        pynvml.nvmlGpmSampleFree(first)
        pynvml.nvmlGpmSampleFree(second)


def _cut(handle: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0])
    except NOT_HERE:
        return False


def test_the_nearest_devices_need_two_calls_that_succeed(handles: list[Any]) -> None:
    for handle in handles:
        near = pynvml.nvmlDeviceGetTopologyNearestGpus(handle, pynvml.NVML_TOPOLOGY_SYSTEM)
        assert len(near) == len(handles) - 1
        for other in near:
            level = pynvml.nvmlDeviceGetTopologyCommonAncestor(handle, other)
            assert level in (0, 10, 20, 30, 40, 50)
            assert level == pynvml.nvmlDeviceGetTopologyCommonAncestor(other, handle)


def test_a_link_that_no_card_has_is_an_argument_or_not_supported(handles: list[Any]) -> None:
    with pytest.raises((pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NotSupported)):
        pynvml.nvmlDeviceGetNvLinkState(handles[0], 40)


def test_a_return_code_has_words(handles: list[Any]) -> None:
    assert "not supported" in pynvml.nvmlErrorString(3).lower()
    assert "lost" in pynvml.nvmlErrorString(15).lower()
