"""States of fleets for the encoders' tests: every catalogue field with a value of its own, in its range and as the wire gives it."""

from __future__ import annotations

import struct
from typing import Any

from schemas.catalogue import CATALOGUE, Metric
from schemas.device_state import DeviceState, FleetState, NodeState
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import Value

NODE = NodeRef("prod-a", "gpu-01")
NOW_NS = 1_796_083_200 * 10**9
UUID = "GPU-4bb4b9b5-3b9c-4ac0-8f2a-6a1c2d3e4f50"
UID = f"nvidia:{UUID}"


def float32(value: float) -> float:
    """What a float field of the wire makes of a number."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def value_of(metric: Metric) -> Value:
    """A valid value that no other field has, where its range allows."""
    low = metric.minimum or 0.0
    high = min(metric.maximum if metric.maximum is not None else 1e9, 1e9)
    share = metric.number / 200
    if metric.kind == "set":
        return metric.number & 0b11111  # bits that have names
    match metric.wire:
        case "bool":
            return metric.number % 2 == 0
        case "float":
            return float32(low + (high - low) * share)
        case "double":
            return low + (high - low) * share
        case _:
            return int(low + (high - low) * share)


def everything() -> dict[str, Value]:
    return {metric.name: value_of(metric) for metric in CATALOGUE}


def info(**fields: Any) -> v1.DeviceInfo:
    """An H100 with what a plugin says of it; `fields` in place of that."""
    said: dict[str, Any] = {
        "vendor": "nvidia",
        "model": "NVIDIA H100 80GB HBM3",
        "serial": "1653923026510",
        "kind": v1.DeviceKind.DEVICE_KIND_ACCELERATOR,
        "bdf": "0000:3b:00.0",
        "driver_version": "580.95.05",
        "runtime_version": "13.0",
    }
    return v1.DeviceInfo(**{**said, **fields})


def device(uid: str = UID, index: int = 0, **fields: Any) -> DeviceState:
    """A device with every reading; `fields` of DeviceState in place of that."""
    said: dict[str, Any] = {"values": everything(), "info": info(), "source": "nvidia", "taken_at_ns": NOW_NS, "since_ns": NOW_NS - 10**12}
    return DeviceState(**{"node": NODE, "uid": uid, "index": index, **said, **fields})


def instance(number: int, profile: str, parent: str = UID, **fields: Any) -> DeviceState:
    """A MIG instance of `parent`."""
    shape = v1.PartitionInfo(profile=profile, gpu_instance_id=number, compute_instance_id=0)
    about = info(kind=v1.DeviceKind.DEVICE_KIND_PARTITION, parent_uid=parent, partition=shape)
    return device(f"nvidia:MIG-{number:08d}", number, info=about, **fields)


def fleet(*devices: DeviceState) -> FleetState:
    return FleetState(NOW_NS, devices, (NodeState(NODE),))
