"""Calls that an old driver's library may lack, and what is lost without each."""

from __future__ import annotations

from typing import Final

LOST: Final[dict[str, str]] = {
    "nvmlDeviceGetMemoryInfo_v2": "reserved memory by itself: used memory includes it",
    "nvmlDeviceGetFieldValues": "memory temperature, throttled time, byte counters of PCIe and NVLink",
    "nvmlGpmMetricsGet": "activity of SMs, tensor cores, memory and arithmetic pipes; how busy MIG instances are",
    "nvmlDeviceGetSramEccErrorStatus": "errors of on-chip memories and their threshold flag",
    "nvmlDeviceGetRemappedRows": "remapped rows: what says that memory needs a reset or the board an exchange",
    "nvmlDeviceGetMarginTemperature": "margin to the slowdown temperature",
    "nvmlDeviceGetGpuFabricInfoV": "health of the NVLink fabric",
    "nvmlDeviceGetProcessesUtilizationInfo": "use per process on Blackwell",
    "nvmlDeviceGetPlatformInfo": "chassis, slot and tray of the board",
    "nvmlDeviceGetMigDeviceHandleByIndex": "MIG instances",
    "nvmlEventSetWait_v2": "Xids from the driver itself: the kernel log is then their only source",
}
