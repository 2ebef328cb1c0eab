"""MIG instances: each is a device of its own, named as NVIDIA's device plugin names it, with what the driver tells of it alone."""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Final

from collectors.nvidia.calls import Call, number, structure
from collectors.nvidia.fast import memory
from collectors.nvidia.fast_fields import PROFILED
from collectors.nvidia.gpm import Profiler
from collectors.nvidia.readings import all_absent, percent, reading, refuse_impossible_memory
from collectors.nvidia.reply import FAILED, NOT_SUPPORTED, Failed, Replies, unsupported
from collectors.nvidia.source import Handle, Source
from schemas.builder import SampleBuilder
from schemas.identity import device_uid
from schemas.telemetry import v1
from schemas.values import Absent

_GONE: Final = frozenset((2, 6))
"""An instance that was destroyed is no longer an argument (2) or not found (6)."""

_ABOVE: Final = 2.0
"""NVIDIA counts an instance's activity against its slices, of which there are 7 for 8 parts of memory and more than 7 parts of SMs: SM
activity of busy instances reads above 1 (DCGM issue 152). Up to twice is that, more is nonsense."""

_SLOW: Final = (
    ("memory_total_bytes", "memory_total_bytes"),
    ("memory_reserved_bytes", "memory_reserved_bytes"),
    ("bar1_total_bytes", "bar1_total_bytes"),
    ("bar1_used_bytes", "bar1_used_bytes"),
    ("ecc_uncorrected_sram_volatile_errors", "ecc_uncorrected_sram_volatile"),
)

_ACTIVITIES: Final = frozenset(name for name, _ in PROFILED)
_UNPROFILED: Final[Replies] = dict.fromkeys((reply for _, reply in PROFILED), FAILED[NOT_SUPPORTED])

RAW_PREFIX: Final = "nvidia.raw."
"""Registered name of the vendor extras that keep an activity as it was said where it had to be bounded: nvidia.raw.sm_active_ratio."""


class Instance:
    """One MIG device: a compute instance in a GPU instance of `parent`.

    Memory is its GPU instance's, which its compute instances share. Activity is told for GPU instances: a compute instance has it where
    it is the only one, else it is absent(not_supported).
    """

    def __init__(self, source: Source, parent: Handle, handle: Handle, info: v1.DeviceInfo, *, profiled: bool, alone: bool) -> None:
        self.info = info
        self.borrows = alone and not profiled
        """Whether what another says of its GPU instance's activity is its own."""
        self.handle = handle
        self.gone = False
        self._session = source.sessions
        self._memory: Call = memory(source, handle)
        self._slow = tuple(_slow_calls(source, handle))
        gi = info.partition.gpu_instance_id
        self._profiler = Profiler(source, parent, gi) if profiled and alone and info.partition.HasField("gpu_instance_id") else None

    @property
    def gpu_instance_id(self) -> int:
        return self.info.partition.gpu_instance_id

    @property
    def compute_instance_id(self) -> int:
        return self.info.partition.compute_instance_id

    def read(self, *, slow: bool) -> SampleBuilder:
        """What is due, all else absent(not_supported): board-level quantities are the card's."""
        replies: Replies = {}
        self._memory.run(replies)
        if slow and self._memory.otherwise is not None and unsupported(replies["memory_total_bytes"]):
            self._memory = self._memory.otherwise
            self._memory.run(replies)
        said = replies["memory_total_bytes"]
        self.gone = isinstance(said, Failed) and said.code in _GONE
        if self.gone:
            return all_absent(self.info.uid, self.info.index, "lost", slow=slow)
        profile = self._profiler.read() if self._profiler is not None else _UNPROFILED
        builder = all_absent(self.info.uid, self.info.index, "not_supported", slow=slow, but=() if profile else _ACTIVITIES)
        refuse_impossible_memory(replies)
        builder.set("memory_used_bytes", reading(replies["memory_used_bytes"], 1))
        if profile is not _UNPROFILED:
            _activity(builder, profile)
        if slow:
            for call in self._slow:
                call.run(replies)
            for name, reply in _SLOW:
                builder.set(name, reading(replies.get(reply), 1))
        return builder

    def close(self) -> None:
        """Free its samples; the session must still be open."""
        if self._profiler is not None:
            self._profiler.close()


def instances(source: Source, parent: Handle, card: v1.DeviceInfo, known: dict[str, Instance], *, profiled: bool) -> dict[str, Instance]:
    """The card's instances by uid, in the order of their index, which may have holes. Those of `known` whose handle still holds stay."""
    n, ask = source.nvml, source.ask
    most = ask(n.nvmlDeviceGetMaxMigDeviceCount, parent)
    listed = []
    for index in range(most if isinstance(most, int) else 0):
        handle = ask(n.nvmlDeviceGetMigDeviceHandleByIndex, parent, index)
        if not isinstance(handle, Failed):
            listed.append((index, handle, _info(source, handle, card, index)))
    shared = Counter(info.partition.gpu_instance_id for _, _, info in listed)
    found: dict[str, Instance] = {}
    for _, handle, info in listed:
        before = known.get(info.uid)
        if before is not None and not before.gone and before.info == info and _same(before.handle, handle):
            found[info.uid] = before
            continue
        if before is not None:
            before.close()
        alone = shared[info.partition.gpu_instance_id] == 1
        found[info.uid] = Instance(source, parent, handle, info, profiled=profiled, alone=alone)
    for uid, instance in known.items():
        if uid not in found:
            instance.close()
    return found


def _info(source: Source, handle: Handle, card: v1.DeviceInfo, index: int) -> v1.DeviceInfo:
    n, ask = source.nvml, source.ask
    gi, ci = ask(n.nvmlDeviceGetGpuInstanceId, handle), ask(n.nvmlDeviceGetComputeInstanceId, handle)
    uuid, name = source.text(n.nvmlDeviceGetUUID, handle), source.text(n.nvmlDeviceGetName, handle)
    partition = v1.PartitionInfo()
    if isinstance(name, str):
        partition.profile = name.rpartition(" MIG ")[2].strip() if " MIG " in name else ""
    if not isinstance(gi, Failed):
        partition.gpu_instance_id = gi
    if not isinstance(ci, Failed):
        partition.compute_instance_id = ci
    attributes = ask(n.nvmlDeviceGetAttributes_v2, handle)
    if not isinstance(attributes, Failed):
        partition.gpu_slices = attributes.gpuInstanceSliceCount
        partition.compute_slices = attributes.computeInstanceSliceCount
        partition.multiprocessors = attributes.multiprocessorCount
    # Drivers before 470 name an instance by its card and its two ids.
    unique = (
        uuid
        if isinstance(uuid, str) and uuid
        else f"MIG-{card.uid.partition(':')[2]}/{partition.gpu_instance_id}/{partition.compute_instance_id}"
    )
    return v1.DeviceInfo(
        uid=device_uid("nvidia", unique=unique),
        vendor="nvidia",
        model=card.model,
        serial=card.serial,
        kind=v1.DeviceKind.DEVICE_KIND_PARTITION,
        index=index,
        bdf=card.bdf,
        slot=card.slot,
        parent_uid=card.uid,
        partition=partition,
        memory_kind="discrete",  # boards that share the host's memory know no MIG
        architecture=card.architecture,
        compute_capability=card.compute_capability,
    )


def _activity(builder: SampleBuilder, profile: Replies) -> None:
    for name, reply in PROFILED if profile else ():
        value = percent(profile.get(reply))
        if not isinstance(value, Absent) and 1.0 < value <= _ABOVE:
            builder.vendor(RAW_PREFIX + name, value)
            value = 1.0
        builder.set(name, value)


def _slow_calls(source: Source, handle: Handle) -> tuple[Call, ...]:
    n = source.nvml
    bar1 = {"bar1_total_bytes": "bar1Total", "bar1_used_bytes": "bar1Used"}
    uncorrected, volatile, sram = 1, 0, 7
    return (
        structure(source, bar1, "nvmlDeviceGetBAR1MemoryInfo", handle, room=n.c_nvmlBAR1Memory_t()),
        number(
            source,
            "ecc_uncorrected_sram_volatile",
            "nvmlDeviceGetMemoryErrorCounter",
            handle,
            uncorrected,
            volatile,
            sram,
            room=ctypes.c_ulonglong,
        ),
    )


def _same(one: Handle, other: Handle) -> bool:
    return ctypes.cast(one, ctypes.c_void_p).value == ctypes.cast(other, ctypes.c_void_p).value
