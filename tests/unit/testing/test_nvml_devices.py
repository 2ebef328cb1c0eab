"""What the fake libnvidia-ml says of instances, processes, links, fields, events and vGPUs, read with the unmodified bindings."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from xpulse.testing.nvml import State

__all__ = ["fake_nvml", "fake_nvml_library"]
ALL_LINKS = 0xFFFFFFFF


@pytest.fixture
def of_board(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session on one or more cards of a board: (state, handles)."""

    def start(profile: str, count: int = 1) -> tuple[State, list[Any]]:
        state = nvml.State(tmp_path / f"{profile}.json", profile, count=count)
        fixtures.loaded(fake_nvml_library, monkeypatch, state)
        pynvml.nvmlInit()
        return state, [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)]

    yield start
    fixtures.forget()


def instances(parent: Any) -> dict[int, str]:
    """UUID by index, holes left out."""
    found = {}
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(parent)):
        try:
            found[index] = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, index))
        except pynvml.NVMLError_NotFound:
            continue
    return found


# ---- MIG


def test_the_captured_layout_has_its_ids_and_sizes(of_board: Any) -> None:
    _, (card,) = of_board("h100-mig")
    handles = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, i) for i in range(4)]
    assert [pynvml.nvmlDeviceGetGpuInstanceId(h) for h in handles] == [2, 3, 9, 10]
    assert [pynvml.nvmlDeviceGetMemoryInfo(h).total // 2**20 for h in handles] == [40_448, 20_096, 9_984, 9_984]
    assert [pynvml.nvmlDeviceGetAttributes(h).multiprocessorCount for h in handles] == [60, 32, 16, 16]
    assert pynvml.nvmlDeviceGetName(handles[0]) == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetPowerUsage(handles[0])
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetNvLinkState(card, 0)


def test_instances_may_stand_anywhere_and_are_made_again_with_other_names(of_board: Any) -> None:
    state, (card,) = of_board("h100")
    state.mig(0, [{"profile": "3g.40gb", "index": 1}, {"profile": "1g.10gb", "index": 4, "gi": 11}])
    first = instances(card)
    assert list(first) == [1, 4]
    old = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 4)
    assert pynvml.nvmlDeviceGetGpuInstanceId(old) == 11
    state.mig(0, ["1g.10gb", "1g.10gb"])
    second = instances(card)
    assert list(second) == [0, 1]
    assert not set(first.values()) & set(second.values())
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetMemoryInfo(old)
    state.mig(0, None)
    assert pynvml.nvmlDeviceGetMigMode(card) == [0, 0]
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)


def test_a_profile_that_the_board_has_not_is_refused(of_board: Any) -> None:
    state, _ = of_board("h100")
    with pytest.raises(ValueError, match=r"no MIG profile '9g.1gb'; it has: 1g.10gb"):
        state.mig(0, ["9g.1gb"])
    with pytest.raises(ValueError, match="it has: none"):
        State(state.path, "t4").mig(0, ["1g.10gb"])


def test_the_activity_of_an_instance_comes_by_its_id(of_board: Any) -> None:
    state, (card,) = of_board("h100-mig")
    first, second = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
    for sample in (first, second):
        pynvml.nvmlGpmMigSampleGet(card, 2, sample)
    query = pynvml.c_nvmlGpmMetricsGet_t()
    query.version, query.numMetrics, query.sample1, query.sample2 = pynvml.NVML_GPM_METRICS_GET_VERSION, 2, first, second
    query.metrics[0].metricId, query.metrics[1].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL, pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC
    found = pynvml.nvmlGpmMetricsGet(query)
    assert (found.metrics[0].nvmlReturn, found.metrics[0].value) == (0, 95.5)
    assert found.metrics[1].nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlGpmMigSampleGet(card, 5, first)
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlGpmSampleGet(card, first)
    state.mig(0, ["7g.80gb"])
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlGpmMetricsGet(query)


def test_processes_of_instances_stand_with_their_ids_on_the_card(of_board: Any) -> None:
    _, (card,) = of_board("h100-mig")
    instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
    other = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 1)
    on_card = pynvml.nvmlDeviceGetComputeRunningProcesses(card)
    assert [(p.pid, p.gpuInstanceId, p.computeInstanceId) for p in on_card] == [(21180, 2, 0), (21181, 2, 0), (21198, 2, 0)]
    assert [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(instance)] == [21180, 21181, 21198]
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(other) == []


def test_an_instance_may_be_told_to_answer_for_its_card(of_board: Any) -> None:
    state, (card,) = of_board("h100-mig")
    instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
    state.device(0).put("mig", instances_answer_for_parent=True)  # what DCGM and drivers have done: every instance has the card's energy
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(instance) == 918_273_645_123
    assert pynvml.nvmlDeviceGetMemoryInfo(instance).total == 40_448 * 2**20


# ---- processes


def test_processes_by_kind_with_memory_that_is_not_available(fake_nvml: State) -> None:
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    fake_nvml.processes(0, [{"pid": 7, "memory_bytes": 5}, {"pid": 8, "memory_bytes": None, "type": "graphics"}, {"pid": 9, "type": "mps"}])
    assert [(p.pid, p.usedGpuMemory) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)] == [(7, 5)]
    assert [(p.pid, p.usedGpuMemory) for p in pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle)] == [(8, None)]
    (mps,) = pynvml.nvmlDeviceGetMPSComputeRunningProcesses(handle)
    assert (mps.pid, mps.usedGpuMemory, mps.gpuInstanceId) == (9, None, 0xFFFFFFFF)
    (detail,) = pynvml.nvmlDeviceGetRunningProcessDetailList(handle, pynvml.nvmlProcessDetailList_v1, 0)
    assert (detail.pid, detail.usedGpuMemory) == (7, 5)


def test_both_calls_tell_how_busy_processes_keep_a_card(of_board: Any) -> None:
    _, (card,) = of_board("h100")
    old = pynvml.nvmlDeviceGetProcessUtilization(card, 0)
    new = pynvml.nvmlDeviceGetProcessesUtilizationInfo(card, 0)
    assert [(s.pid, s.smUtil, s.memUtil) for s in old] == [(11345, 99, 10)]
    assert [(s.pid, s.smUtil, s.memUtil) for s in new] == [(11345, 99, 10)]
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetProcessUtilization(card, 2**62)


def test_on_blackwell_only_the_newer_call_does(of_board: Any) -> None:
    _, (card,) = of_board("gb200")
    assert pynvml.nvmlDeviceGetProcessUtilization(card, 0) == []
    assert [s.smUtil for s in pynvml.nvmlDeviceGetProcessesUtilizationInfo(card, 0)] == [86]


# ---- fields and links


def one(handle: Any, field: int, scope: int | None = None) -> Any:
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [field if scope is None else (field, scope)])
    return value


def test_fields_of_links_have_a_total_and_each_links_share(of_board: Any) -> None:
    state, (card,) = of_board("gb200")
    each = 550_123_456_789
    assert one(card, 202, ALL_LINKS).value.ullVal == 18 * each
    assert one(card, 202, 5).value.ullVal == each
    state.device(0).field(202, 7, scope=5)
    assert one(card, 202, 5).value.ullVal == 7
    assert one(card, 202, 18).nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert one(card, 202, 36).nvmlReturn == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert one(card, 138, ALL_LINKS).nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_a_total_is_shared_among_links_that_say_nothing(of_board: Any) -> None:
    _, (card,) = of_board("a100")
    assert one(card, 138, ALL_LINKS).value.ullVal == 748_576_000
    assert one(card, 138, 11).value.ullVal == 748_576_000 // 12
    assert one(card, 138, 12).nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_a_field_has_its_drivers_type_or_the_one_it_is_given(of_board: Any) -> None:
    state, (card,) = of_board("h100")
    margin, power, energy = one(card, 193), one(card, 186), one(card, 83)
    assert (margin.valueType, margin.value.siVal) == (5, -8)
    assert (power.valueType, power.value.uiVal) == (1, 588_390)
    assert (energy.valueType, energy.value.ullVal) == (3, 918_273_645_123)
    state.device(0).field(83, {"value": 1.5, "type": 0})
    assert one(card, 83).value.dVal == 1.5
    state.device(0).field(83, nvml.code(4))
    assert one(card, 83).nvmlReturn == 4


def test_a_driver_knows_no_fields_of_its_future(of_board: Any) -> None:
    _, (card,) = of_board("t4")
    assert one(card, 186).nvmlReturn == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert one(card, 94).nvmlReturn == 0


def test_links_are_told_one_by_one(of_board: Any) -> None:
    state, (card,) = of_board("a100")
    state.device(0).link(3, active=0, replay=40)
    assert [pynvml.nvmlDeviceGetNvLinkState(card, link) for link in (2, 3)] == [1, 0]
    assert [pynvml.nvmlDeviceGetNvLinkErrorCounter(card, link, 0) for link in (2, 3)] == [0, 40]
    assert pynvml.nvmlDeviceGetNvLinkRemotePciInfo(card, 0).busId == "00000000:C4:00.0"
    assert pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(card, 0) == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetNvLinkState(card, 12)  # a number that other boards have


# ---- events


def test_an_xid_comes_to_the_set_that_waits_for_it(fake_nvml: State) -> None:
    pynvml.nvmlInit()
    first, second = (pynvml.nvmlDeviceGetHandleByIndex(i) for i in (0, 1))
    fake_nvml.push_xid(0, 13)  # before the set was there
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(second, pynvml.nvmlEventTypeXidCriticalError, events)
    fake_nvml.push_xid(0, 31)  # of a card that it does not wait for
    fake_nvml.push_event(1, pynvml.nvmlEventTypeSingleBitEccError, 0)  # a kind that it does not wait for
    fake_nvml.push_xid(1, 79)
    fake_nvml.push_xid(1, 94, gi=2, ci=0)
    got = [pynvml.nvmlEventSetWait_v2(events, 5000) for _ in range(2)]
    assert [(e.eventType, e.eventData, e.gpuInstanceId) for e in got] == [(8, 79, 0xFFFFFFFF), (8, 94, 2)]
    assert pynvml.nvmlDeviceGetUUID(got[0].device) == pynvml.nvmlDeviceGetUUID(second)
    assert pynvml.nvmlDeviceGetUUID(first) != pynvml.nvmlDeviceGetUUID(second)
    with pytest.raises(pynvml.NVMLError_Timeout):
        pynvml.nvmlEventSetWait_v2(events, 0)
    pynvml.nvmlEventSetFree(events)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlEventSetWait_v2(events, 0)


def test_a_wait_wakes_up_for_what_happens_meanwhile(fake_nvml: State) -> None:
    pynvml.nvmlInit()
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.nvmlEventTypeXidCriticalError, events)
    threading.Timer(0.05, lambda: fake_nvml.push_xid(0, 48)).start()
    assert pynvml.nvmlEventSetWait_v2(events, 60_000).eventData == 48


def test_a_wait_ends_when_the_driver_goes(fake_nvml: State) -> None:
    pynvml.nvmlInit()
    events = pynvml.nvmlEventSetCreate()
    threading.Timer(0.05, fake_nvml.unload_driver).start()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlEventSetWait_v2(events, 60_000)


def test_what_a_card_cannot_tell_is_not_registered(of_board: Any) -> None:
    state, (card,) = of_board("h100")
    state.device(0).set(supported_event_types=0x10)
    events = pynvml.nvmlEventSetCreate()
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceRegisterEvents(card, pynvml.nvmlEventTypeXidCriticalError, events)


# ---- vGPU, memory repairs, place


def test_a_host_of_vgpus_lists_them(of_board: Any) -> None:
    state, (card,) = of_board("l40s")
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetActiveVgpus(card)
    state.device(0).set(virtualization_mode=3)
    assert pynvml.nvmlDeviceGetActiveVgpus(card) == []
    made = {"id": 3_251_634_205, "uuid": "b2c4", "vm_id": "6f1e", "type_id": 1150, "type_name": "NVIDIA L40S-8Q", "licensed": 1}
    state.device(0).set(vgpus=[made | {"memory_used_bytes": 2**30, "sm_percent": 40}, {"id": 2, "type_id": 1150, "licensed": 0}])
    first, second = pynvml.nvmlDeviceGetActiveVgpus(card)
    assert pynvml.nvmlVgpuInstanceGetUUID(first) == "b2c4"
    assert pynvml.nvmlVgpuInstanceGetVmID(first) == (b"6f1e", 1)
    assert pynvml.nvmlVgpuInstanceGetFbUsage(first) == 2**30
    assert pynvml.nvmlVgpuTypeGetName(pynvml.nvmlVgpuInstanceGetType(first)) == "NVIDIA L40S-8Q"
    assert [pynvml.nvmlVgpuInstanceGetLicenseStatus(v) for v in (first, second)] == [1, 0]
    assert pynvml.nvmlVgpuInstanceGetLicenseInfo(first).currentState == pynvml.NVML_GRID_LICENSE_STATE_LICENSED
    assert [u.smUtil.uiVal for u in pynvml.nvmlDeviceGetVgpuInstancesUtilizationInfo(card, 0)] == [40, 0]
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlVgpuInstanceGetUUID(77)


def test_retired_pages_are_of_cards_before_remapped_rows(of_board: Any) -> None:
    state, (old,) = of_board("t4")
    state.device(0).put("retired_pages", double_bit=[{"address": 0xABC000, "at": 1_700_000_000}], pending=1)
    assert pynvml.nvmlDeviceGetRetiredPages_v2(old, 0) == []
    assert pynvml.nvmlDeviceGetRetiredPages_v2(old, 1) == [{"address": 0xABC000, "timestamp": 1_700_000_000}]
    assert pynvml.nvmlDeviceGetRetiredPagesPendingStatus(old) == 1
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetRemappedRows(old)


def test_ecc_is_told_by_place(of_board: Any) -> None:
    state, (card,) = of_board("h100")
    state.device(0).put("ecc_errors", **{"uncorrected.volatile.sram": 2, "corrected.aggregate.dram": 5})
    assert pynvml.nvmlDeviceGetMemoryErrorCounter(card, 1, 0, pynvml.NVML_MEMORY_LOCATION_SRAM) == 2
    assert pynvml.nvmlDeviceGetMemoryErrorCounter(card, 0, 1, pynvml.NVML_MEMORY_LOCATION_DRAM) == 5
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetMemoryErrorCounter(card, 0, 1, pynvml.NVML_MEMORY_LOCATION_L1_CACHE)
    state.device(0).put("sram", threshold_exceeded=1, l2=3)
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    status.version = pynvml.nvmlEccSramErrorStatus_v1
    pynvml.nvmlDeviceGetSramEccErrorStatus(card, ctypes.byref(status))
    assert (status.bThresholdExceeded, status.aggregateUncBucketL2, status.volatileCor) == (1, 3, 0)


def test_a_rack_scale_card_knows_its_place(of_board: Any) -> None:
    _, (card,) = of_board("gb200")
    fabric = pynvml.c_nvmlGpuFabricInfo_v3_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(card, ctypes.byref(fabric))
    assert bytes(fabric.clusterUuid).hex() == "d4f1a3c658e24b908a771c2e3f405162"
    assert (fabric.state, fabric.cliqueId, fabric.healthMask) == (3, 32_766, 0x55)
    platform = pynvml.c_nvmlPlatformInfo_v2_t()
    pynvml.nvmlDeviceGetPlatformInfo(card, ctypes.byref(platform))
    assert platform.chassisSerialNumber == "1820325190042"
    assert (ord(platform.slotNumber), ord(platform.trayIndex)) == (11, 3)
    assert pynvml.nvmlDeviceGetNumaNodeId(card) == 2


def test_affinity_and_ancestors(of_board: Any) -> None:
    state, (one_, two, three) = of_board("a100", 3)
    state.device(0).put("topology", **{state.data["devices"][1]["bus_id"]: 10})
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(two, one_) == 10
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(one_, three) == 40
    assert len(pynvml.nvmlDeviceGetTopologyNearestGpus(one_, pynvml.NVML_TOPOLOGY_SINGLE)) == 1
    assert list(pynvml.nvmlDeviceGetCpuAffinity(one_, 2)) == [1_048_575, 0]
