"""What is asked of a card when it is first seen in a session: what it is, where it sits, and how it is joined to the others."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

from collectors.nvidia.reply import Failed, Replies, Reply, text
from collectors.nvidia.source import Handle, Source

_WORDS = max(16, ((os.cpu_count() or 1) + 63) // 64)
"""64-bit words of a CPU set: room for 1,024 CPUs, or all there are."""

_VGPU_GUEST = 2
"""nvmlGpuVirtualizationMode_t."""


def identity(source: Source, handle: Handle) -> Replies:
    """Names, numbers and modes of one card."""
    n, ask = source.nvml, source.ask
    pci = ask(n.nvmlDeviceGetPciInfo_v3, handle)
    limits = ask(n.nvmlDeviceGetPowerManagementLimitConstraints, handle)
    capability = ask(n.nvmlDeviceGetCudaComputeCapability, handle)
    affinity = ask(n.nvmlDeviceGetCpuAffinity, handle, _WORDS)
    replies: Replies = {
        "uuid": source.text(n.nvmlDeviceGetUUID, handle),
        "name": source.text(n.nvmlDeviceGetName, handle),
        "serial": source.text(n.nvmlDeviceGetSerial, handle),
        "vbios": source.text(n.nvmlDeviceGetVbiosVersion, handle),
        "board_part": source.text(n.nvmlDeviceGetBoardPartNumber, handle),
        "bdf": pci if isinstance(pci, Failed) else text(pci.busId),
        "module": ask(n.nvmlDeviceGetModuleId, handle),
        "minor_number": ask(n.nvmlDeviceGetMinorNumber, handle),
        "numa_node": ask(n.nvmlDeviceGetNumaNodeId, handle),
        "architecture": ask(n.nvmlDeviceGetArchitecture, handle),
        "compute_capability": capability if isinstance(capability, Failed) else f"{capability[0]}.{capability[1]}",
        "cpu_affinity": affinity if isinstance(affinity, Failed) else cpu_list(list(affinity)),
        "power_limit_max_milliwatts": limits if isinstance(limits, Failed) else limits[1],
        "virtualization": ask(n.nvmlDeviceGetVirtualizationMode, handle),
    }
    return replies | platform(source, handle)


def platform(source: Source, handle: Handle) -> Replies:
    """Place in a rack-scale machine, where the board is of one."""
    n = source.nvml
    found = n.c_nvmlPlatformInfo_v2_t()
    done = source.ask(_filled, n.nvmlDeviceGetPlatformInfo, handle, found)
    if isinstance(done, Failed):
        return {}
    raw, kind = bytes(found), n.c_nvmlPlatformInfo_v2_t  # the bindings would decode single bytes as text
    serial = kind.chassisSerialNumber
    return {
        "chassis_serial": text(raw[serial.offset : serial.offset + serial.size].partition(b"\0")[0]),
        "slot": raw[kind.slotNumber.offset],
        "tray": raw[kind.trayIndex.offset],
    }


def topology(source: Source, handle: Handle, others: Mapping[str, Handle]) -> dict[str, int]:
    """nvmlGpuTopologyLevel_t to each of the others that answer, by uid."""
    n = source.nvml
    found: dict[str, int] = {}
    for uid, other in others.items():
        level = source.ask(n.nvmlDeviceGetTopologyCommonAncestor, handle, other)
        if not isinstance(level, Failed):
            found[uid] = level
    return found


def license_state(source: Source, handle: Handle, virtualization: Reply | None) -> Reply | None:
    """1 where a vGPU in this guest has its licence, 0 where not; None on anything that is no vGPU: it needs none."""
    if virtualization != _VGPU_GUEST:
        return None
    features = source.ask(source.nvml.nvmlDeviceGetGridLicensableFeatures_v4, handle)
    if isinstance(features, Failed):
        return features
    if not features.isGridLicenseSupported:
        return None
    listed = features.gridLicensableFeatures[: features.licensableFeaturesCount]
    return int(any(feature.featureState for feature in listed))


def cpu_list(words: list[int]) -> str:
    """A set of CPUs as the kernel writes it: 0-31,64-95."""
    cpus = [64 * i + bit for i, word in enumerate(words) for bit in range(64) if word >> bit & 1]
    parts: list[str] = []
    start = 0
    for i, cpu in enumerate(cpus):
        if i + 1 == len(cpus) or cpus[i + 1] != cpu + 1:
            parts.append(str(cpu) if start == i else f"{cpus[start]}-{cpu}")
            start = i + 1
    return ",".join(parts)


def _filled(call: Any, handle: Handle, room: Any) -> None:
    """The bindings' wrapper wants the struct by reference."""
    call(handle, ctypes.byref(room))
