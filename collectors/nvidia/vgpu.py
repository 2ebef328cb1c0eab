"""vGPUs on their host: each is a device of its own, with what the host's driver tells of it."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from collectors.nvidia.calls import number
from collectors.nvidia.readings import all_absent, percent, reading
from collectors.nvidia.reply import Failed, Replies, Reply, text, unsupported
from collectors.nvidia.source import Handle, Source
from schemas.builder import SampleBuilder
from schemas.identity import device_uid
from schemas.telemetry import v1

_UTILIZATION: Final = {
    "utilization_ratio": "smUtil",
    "memory_busy_ratio": "memUtil",
    "encoder_utilization_ratio": "encUtil",
    "decoder_utilization_ratio": "decUtil",
}


class Vgpu:
    """One vGPU of a card; `number` is NVML's handle of it."""

    def __init__(self, source: Source, vgpu: int, kind: int | None, info: v1.DeviceInfo) -> None:
        self.info, self.number = info, vgpu
        self.gone = False
        self.utilization: Replies = {}
        """Percent by field of the catalogue, as the card's last list had it."""
        self._source = source
        # pynvml makes room for four bytes where the driver writes eight.
        self._used = number(source, "used", "nvmlVgpuInstanceGetFbUsage", vgpu, room=ctypes.c_ulonglong)
        self._kind = kind

    def read(self, *, slow: bool) -> SampleBuilder:
        """What is due, all else absent(not_supported): board-level quantities are the card's."""
        replies: Replies = {}
        self._used.run(replies)
        used = replies["used"]
        self.gone = isinstance(used, Failed) and used.code in (2, 6)
        builder = all_absent(self.info.uid, self.info.index, "lost" if self.gone else "not_supported", slow=slow)
        if self.gone:
            return builder
        builder.set("memory_used_bytes", reading(used, 1))
        for name in _UTILIZATION:
            builder.set(name, percent(self.utilization.get(name)))
        if slow:
            builder.set("memory_total_bytes", reading(self._size(), 1))
            builder.set("license_valid", reading(self._license(), 1))
        return builder

    def close(self) -> None:
        """Nothing is held."""

    def _size(self) -> Reply | None:
        if self._kind is None:
            return None
        found: Replies = {}
        number(self._source, "size", "nvmlVgpuTypeGetFramebufferSize", self._kind, room=ctypes.c_ulonglong).run(found)
        return found["size"]

    def _license(self) -> Reply:
        n, ask = self._source.nvml, self._source.ask
        found = ask(n.nvmlVgpuInstanceGetLicenseInfo_v2, self.number)
        if not isinstance(found, Failed):
            return int(found.isLicensed)
        return ask(n.nvmlVgpuInstanceGetLicenseStatus, self.number)  # type: ignore[no-any-return]  # the bindings are untyped


def vgpus(source: Source, parent: Handle, card: v1.DeviceInfo, known: dict[str, Vgpu]) -> dict[str, Vgpu] | None:
    """The active vGPUs of a card by uid; None where it is not cut into any (the driver says so or cannot)."""
    numbers = source.ask(source.nvml.nvmlDeviceGetActiveVgpus, parent)
    if isinstance(numbers, Failed):
        return None
    found: dict[str, Vgpu] = {}
    for index, vgpu in enumerate(map(int, numbers)):
        made = _vgpu(source, vgpu, card, index)
        before = known.get(made.info.uid)
        same = before is not None and not before.gone and before.number == vgpu and before.info == made.info
        found[made.info.uid] = before if same and before is not None else made
    return found


def read_utilization(source: Source, parent: Handle, found: dict[str, Vgpu], since_us: int) -> int:
    """Give each vGPU its newest utilisation since `since_us` (the driver's clock); one without news keeps what it had.

    Answers the time of the newest, or `since_us`.
    """
    n, ask = source.nvml, source.ask
    samples = ask(n.nvmlDeviceGetVgpuInstancesUtilizationInfo, parent, since_us)
    if isinstance(samples, Failed) and unsupported(samples):
        samples = ask(n.nvmlDeviceGetVgpuUtilization, parent, since_us)
    by_number = {vgpu.number: vgpu for vgpu in found.values()}
    if isinstance(samples, Failed):
        for vgpu in found.values():
            vgpu.utilization = dict.fromkeys(_UTILIZATION, samples)
        return since_us
    newest = since_us
    for sample in sorted(samples, key=lambda sample: int(sample.timeStamp)):
        newest = max(newest, int(sample.timeStamp))
        of = by_number.get(int(sample.vgpuInstance))
        if of is not None:
            # Utilisation is of the unsigned kind.
            of.utilization = {name: int(getattr(sample, member).uiVal) for name, member in _UTILIZATION.items()}
    return newest


def _vgpu(source: Source, vgpu: int, card: v1.DeviceInfo, index: int) -> Vgpu:
    n, ask = source.nvml, source.ask
    uuid, vm = source.text(n.nvmlVgpuInstanceGetUUID, vgpu), ask(n.nvmlVgpuInstanceGetVmID, vgpu)
    kind: Any = ask(n.nvmlVgpuInstanceGetType, vgpu)
    name = source.text(n.nvmlVgpuTypeGetName, kind) if not isinstance(kind, Failed) else kind
    gi = ask(n.nvmlVgpuInstanceGetGpuInstanceId, vgpu)
    partition = v1.PartitionInfo(profile=name if isinstance(name, str) else "")
    if not isinstance(vm, Failed):
        partition.vm_id = text(vm[0]) if isinstance(vm, list | tuple) else text(vm)
    if not isinstance(gi, Failed) and gi != 0xFFFFFFFF:  # all ones: not within a MIG instance
        partition.gpu_instance_id = gi
    unique = uuid if isinstance(uuid, str) and uuid else f"{card.uid.partition(':')[2]}/vgpu{vgpu}"
    info = v1.DeviceInfo(
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
        architecture=card.architecture,
        compute_capability=card.compute_capability,
        virtualization="vgpu",
    )
    return Vgpu(source, vgpu, None if isinstance(kind, Failed) else int(kind), info)
